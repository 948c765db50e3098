"""Every error that the orchestrator defines.

    TrainmasterError
    ├── SettingsIncomplete     retry    the deployment lacks environment variables
    ├── PolicyInvalid          retry    the policy file is wrong
    ├── EventMalformed         ack      the event is invalid; redelivery cannot fix it
    ├── ServiceFailed          retry    a service did not answer, or reported an error
    │   └── AccessDenied       retry    a service refuses this account; a flow skips what is optional
    ├── ObjectGone             -        this generation of an object no longer exists
    ├── ObjectTooLarge         -        an object has more bytes than its kind may have; it was not read
    ├── GenerationMoved        retry    another process wrote the object first
    ├── RecordExists           -        the run is already recorded
    ├── RecordMoved            retry    the record changed since it was read
    ├── RecordDamaged          ack      the record's object does not hold a valid record
    │   └── RecordUnsupported  ack      the record has another version
    ├── DocumentDamaged        retry    the rule book or a rule's state is invalid; an operator must fix it
    ├── LeaseHeld              retry    another delivery of this event is submitting the job now
    ├── LeaseTooShort          retry    too little of this attempt's lease is left to submit safely
    ├── SubmissionRefused      -        Vertex AI refuses the job permanently; the run fails
    ├── SubmissionDeferred     -        Vertex AI cannot accept the job now; the run waits
    │   └── DeploymentRefused  -        Vertex AI refuses this deployment, not the job; the run waits
    │       └── ActAsDenied    -        this deployment may not act as the job's service account
    ├── SubmissionUnknown      retry    it is not known yet whether the job was created
    ├── JobNotFound            -        Vertex AI has no such job
    ├── ReasonPending          retry    a job failed so recently that its reason is not available yet
    └── ReceiversLeft          retry    a notice must be sent again to some of its receivers

`retry` and `ack` are what the entry point does when the error reaches it. `-` marks an error that the flow always
handles; if one reaches the entry point all the same, it is retried.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar


class TrainmasterError(Exception):
    """The base class. `retryable`: whether redelivering the event can help."""

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
        self.faults = faults


class EventMalformed(TrainmasterError):
    retryable = False


class ServiceFailed(TrainmasterError):
    def __init__(self, service: str, operation: str, reason: str) -> None:
        super().__init__(f"{service} could not {operation}: {reason}")
        self.service = service
        self.operation = operation
        self.reason = reason


class AccessDenied(ServiceFailed):
    """The service refuses this account. `permission` is the one that is most likely missing."""

    def __init__(self, service: str, operation: str, permission: str, reason: str = "") -> None:
        super().__init__(service, operation, reason or f"{permission} is not granted")

    def __str__(self) -> str:
        return f"{self.service} does not let this deployment {self.operation}: {self.reason}"


class ObjectGone(TrainmasterError):
    def __init__(self, uri: str, generation: int | None = None) -> None:
        which = f" (generation {generation})" if generation is not None else ""
        super().__init__(f"{uri}{which} does not exist")
        self.uri = uri


class ObjectTooLarge(TrainmasterError):
    def __init__(self, uri: str, max_bytes: int) -> None:
        super().__init__(f"{uri} has more than {max_bytes} bytes, the most that are read of it")
        self.max_bytes = max_bytes


class GenerationMoved(TrainmasterError):
    def __init__(self, uri: str, expected: int) -> None:
        super().__init__(f"{uri} is no longer at generation {expected}")


class RecordExists(TrainmasterError):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} already exists")


class RecordMoved(TrainmasterError):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"the record of run {run_id} changed since it was read")


class RecordDamaged(TrainmasterError):
    retryable = False
    repair: ClassVar[str] = "Restore an earlier generation, or delete the object to forget the run"

    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(f"{uri} is not a valid run record: {problem}. {self.repair}")


class RecordUnsupported(RecordDamaged):
    """A record of another version. It is left unchanged."""

    repair = "Run the release that wrote it until the run has ended, or delete the object to forget the run"


class DocumentDamaged(TrainmasterError):
    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(
            f"{uri} cannot be read: {problem}. Restore an earlier generation, or delete the object to start afresh"
        )


class LeaseHeld(TrainmasterError):
    def __init__(self, run_id: str, expires_at: datetime) -> None:
        super().__init__(
            f"run {run_id} is being submitted by another delivery until {expires_at:%H:%M:%S} UTC"
        )


class LeaseTooShort(TrainmasterError):
    def __init__(self, run_id: str, left_s: float) -> None:
        super().__init__(
            f"only {left_s:.0f} s remain of the lease on run {run_id}, too few to submit its job"
        )


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


class DeploymentRefused(SubmissionDeferred):
    """Vertex AI refuses this deployment and not the job: the run waits until an administrator has repaired it.

    `lacks` is the class of the runs that wait for the same repair. `reason` ends with the repair.
    """

    given_up: ClassVar[str] = "Vertex AI refused this deployment"
    """Why a run gives up, as a clause before "in the 7 days"."""

    def __init__(self, code: int, reason: str, repair: str, *, lacks: str) -> None:
        super().__init__(code, f"{reason.rstrip(' .')}; {repair}")
        self.lacks = lacks


class ActAsDenied(DeploymentRefused):
    """The submitting account may not act as the job's service account, or that account does not exist.

    `account` is the job's account, or empty if the service does not name it.
    """

    given_up = "the deployment could not act as the job's service account"

    def __init__(self, code: int, reason: str, account: str) -> None:
        named = account or "ACCOUNT"
        repair = (
            f"grant each function that submits jobs roles/iam.serviceAccountUser on it, for example: "
            f"gcloud iam service-accounts add-iam-policy-binding {named} "
            f"--member=serviceAccount:tm-on-tick@PROJECT.iam.gserviceaccount.com --role=roles/iam.serviceAccountUser"
        )
        super().__init__(code, reason, repair, lacks=f"act_as_{account}")
        self.account = account


class SubmissionUnknown(TrainmasterError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"it is unknown whether the job was created: {reason}")


class JobNotFound(TrainmasterError):
    def __init__(self, job_name: str) -> None:
        super().__init__(f"Vertex AI has no job {job_name}")


class ReasonPending(TrainmasterError):
    def __init__(self, job_name: str) -> None:
        super().__init__(f"Vertex AI does not say yet why {job_name} failed")


class ReceiversLeft(TrainmasterError):
    """`reasons`: why each of the receivers that are left, by name, did not get it."""

    def __init__(self, notice_id: str, reasons: Mapping[str, str]) -> None:
        left = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        super().__init__(f"notice {notice_id} has not reached {left}")
