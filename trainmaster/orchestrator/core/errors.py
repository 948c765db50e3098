"""Every error the orchestrator names.

    TrainmasterError
    ├── SettingsIncomplete     retry    the deployment lacks environment variables
    ├── PolicyInvalid          retry    the policy file is wrong
    ├── EventMalformed         ack      an event that no redelivery can mend
    ├── ServiceFailed          retry    a service did not answer, or answered that it could not
    │   └── AccessDenied       retry    a service refuses this account; a flow does without what it can
    ├── ObjectGone             -        this generation of an object no longer exists
    ├── GenerationMoved        retry    someone else wrote the object first
    ├── RecordExists           -        the run is on record already
    ├── RecordMoved            retry    the record changed since it was read
    ├── RecordDamaged          ack      the record's object holds something else than a record
    │   └── RecordUnsupported  ack      the record is of another version
    ├── DocumentDamaged        retry    the rule book or a rule's state holds something else; somebody must mend it
    ├── LeaseHeld              retry    another delivery of this event is submitting the job now
    ├── LeaseTooShort          retry    too little of our own lease is left to submit safely
    ├── SubmissionRefused      -        Vertex AI refuses the job for good; the run ends failed
    ├── SubmissionDeferred     -        not now; the run waits
    │   └── ActAsDenied        -        this deployment may not use the job's service account; the run waits
    ├── SubmissionUnknown      retry    nobody can say yet whether the job was created
    ├── JobNotFound            -        Vertex AI knows no such job
    └── JobUnfinished          retry    the log tells of an end which the job itself does not confirm yet

`retry` and `ack` are what the entry point does when the error reaches it; `-` marks an error that the
flow always handles itself (reaching the entry point all the same, it is retried).
"""

from datetime import datetime
from typing import ClassVar


class TrainmasterError(Exception):
    """The root. `retryable` says whether delivering the same event again can help."""

    retryable: ClassVar[bool] = True


class SettingsIncomplete(TrainmasterError):
    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(
            "The environment is incomplete:\n" + "\n".join(f"  {problem}" for problem in problems)
        )
        self.problems = problems


class PolicyInvalid(TrainmasterError):
    def __init__(self, source: str, faults: tuple[str, ...]) -> None:
        super().__init__(
            f"The policy {source} is not usable:\n" + "\n".join(f"  {fault}" for fault in faults)
        )
        self.source = source
        self.faults = faults


class EventMalformed(TrainmasterError):
    retryable = False

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class ServiceFailed(TrainmasterError):
    def __init__(self, service: str, operation: str, reason: str) -> None:
        super().__init__(f"{service} could not {operation}: {reason}")
        self.service = service
        self.operation = operation
        self.reason = reason


class AccessDenied(ServiceFailed):
    """The service refuses this account. `permission` is what it most likely lacks."""

    def __init__(self, service: str, operation: str, permission: str, reason: str = "") -> None:
        super().__init__(service, operation, reason or f"{permission} is not granted")
        self.permission = permission

    def __str__(self) -> str:
        return f"{self.service} does not let this deployment {self.operation}: {self.reason}"


class ObjectGone(TrainmasterError):
    def __init__(self, uri: str, generation: int | None = None) -> None:
        which = f" (generation {generation})" if generation is not None else ""
        super().__init__(f"{uri}{which} does not exist")
        self.uri = uri
        self.generation = generation


class GenerationMoved(TrainmasterError):
    def __init__(self, uri: str, expected: int) -> None:
        super().__init__(f"{uri} is no longer at generation {expected}")
        self.uri = uri
        self.expected = expected


class RecordExists(TrainmasterError):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} already exists")
        self.run_id = run_id


class RecordMoved(TrainmasterError):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"the record of run {run_id} changed since it was read")
        self.run_id = run_id


class RecordDamaged(TrainmasterError):
    retryable = False
    repair: ClassVar[str] = "Restore an earlier generation, or delete the object to forget the run"

    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(f"{uri} is not a valid run record: {problem}. {self.repair}")
        self.uri = uri
        self.problem = problem


class RecordUnsupported(RecordDamaged):
    """A record of another version: it is left as it is."""

    repair = "Run the release that wrote it until the run has ended, or delete the object to forget the run"


class DocumentDamaged(TrainmasterError):
    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(
            f"{uri} cannot be read: {problem}. Restore an earlier generation, or delete the object to start afresh"
        )
        self.uri = uri
        self.problem = problem


class LeaseHeld(TrainmasterError):
    def __init__(self, run_id: str, expires_at: datetime) -> None:
        super().__init__(
            f"run {run_id} is being submitted by another delivery until {expires_at:%H:%M:%S} UTC"
        )
        self.run_id = run_id
        self.expires_at = expires_at


class LeaseTooShort(TrainmasterError):
    def __init__(self, run_id: str, left_s: float) -> None:
        super().__init__(
            f"only {left_s:.0f} s remain of the lease on run {run_id}, too few to submit its job"
        )
        self.run_id = run_id
        self.left_s = left_s


class SubmissionRefused(TrainmasterError):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"Vertex AI refused the job ({code}): {reason}")
        self.code = code
        self.reason = reason


class SubmissionDeferred(TrainmasterError):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"Vertex AI cannot accept the job now ({code}): {reason}")
        self.code = code
        self.reason = reason


class ActAsDenied(SubmissionDeferred):
    """The submitting account may not act as the job's service account, or there is no such account.

    `account` is the job's account, empty where the service does not name it. `reason` ends with the repair.
    """

    def __init__(self, code: int, reason: str, account: str) -> None:
        named = account or "ACCOUNT"
        repair = (
            f"grant each function that submits jobs roles/iam.serviceAccountUser on it, for example: "
            f"gcloud iam service-accounts add-iam-policy-binding {named} "
            f"--member=serviceAccount:tm-on-tick@PROJECT.iam.gserviceaccount.com --role=roles/iam.serviceAccountUser"
        )
        super().__init__(code, f"{reason.rstrip(' .')}; {repair}")
        self.account = account


class SubmissionUnknown(TrainmasterError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"it is unknown whether the job was created: {reason}")
        self.reason = reason


class JobNotFound(TrainmasterError):
    def __init__(self, job_name: str) -> None:
        super().__init__(f"Vertex AI has no job {job_name}")
        self.job_name = job_name


class JobUnfinished(TrainmasterError):
    def __init__(self, job_name: str, state: str) -> None:
        super().__init__(f"the log reports the end of {job_name}, which is still {state}")
        self.job_name = job_name
        self.state = state
