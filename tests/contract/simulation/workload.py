"""The outside of a deployment: users, training jobs, and forged jobs and log entries."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tests.contract.simulation.requests import VALID, SampleRequest, draw_request
from tests.contract.simulation.simulation import Event, Simulation
from tests.contract.world import MODELS, PROJECT, REGION, export_manifest, labelled
from trainmaster.orchestrator.core.errors import JobNotFound
from trainmaster.orchestrator.core.job_names import JobKind, job_name, job_region
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState
from trainmaster.orchestrator.core.runs.states import END_OF
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.services import Services

REUSED_NAMES = 50
"""The number of names that users overwrite repeatedly."""
ERROR_LATE_S = 60.0
ERRORS: Mapping[str, Failure] = {
    "fails": Failure(message="The replica workerpool0-0 exited with a non-zero status of 1.", code=13),
    "is lost": Failure(message="Internal error occurred. Please retry in a few minutes.", code=13),
    "runs out of memory": Failure(
        message="The replica workerpool0-0 ran out of memory and exited with a non-zero status of 137(SIGKILL).",
        code=3,
    ),
}
"""Of the fates after which a job that ran has failed."""
SAVED_AGAIN_S = 5.0
FATES: Mapping[str, float] = {
    "trains": 0.74,
    "trains without a manifest": 0.03,
    "trains, its manifest damaged": 0.02,
    "fails": 0.04,
    "is lost": 0.04,
    "runs out of memory": 0.02,
    "finds no capacity": 0.03,
    "is cancelled": 0.05,
    "expires": 0.02,
    "is deleted": 0.01,
}


@dataclass(frozen=True, kw_only=True)
class SentRequest:
    """A request that was sent."""

    incoming: IncomingDocument
    sample: SampleRequest


class Users:
    """Users drop files, some again under the same name, and publish messages, some twice with one key.

    Some files are saved several times in a moment.

    `cancelled` has the ids of the runs that they ordered to be cancelled, `keyed` by run the messages with a key that
    names two documents.
    """

    def __init__(self, simulation: Simulation, events: int) -> None:
        self._simulation = simulation
        self._events = events
        self._number = 0
        self.requests: dict[str, SentRequest] = {}
        self.keyed: dict[str, list[IncomingDocument]] = {}
        self.cancelled: set[str] = set()
        simulation.later(0.0, self._send_request)

    def _send_request(self) -> None:
        simulation, random, odds = self._simulation, self._simulation.random, self._simulation.odds
        if simulation.tally.events >= self._events:
            return
        self._number += 1
        sample = draw_request(random, odds.invalid)
        if random.random() < odds.message:
            incoming = self._publish(sample)
        else:
            again = random.random() < odds.overwriting
            number = random.randrange(REUSED_NAMES) if again else REUSED_NAMES + self._number
            incoming = self._save(sample, f"requests/{number}.json")
            for _ in range(random.choice((1, 2)) if random.random() < odds.saved_again else 0):
                simulation.later(
                    random.expovariate(1 / SAVED_AGAIN_S),
                    partial(self._save, sample, f"requests/{number}.json"),
                )
        self.requests[incoming.run_id] = SentRequest(incoming=incoming, sample=sample)
        if random.random() < odds.forged_job:
            self._forge(incoming.run_id)
        if random.random() < odds.cancel_order:
            within_s = odds.queue_s + odds.work_s
            simulation.later(random.expovariate(1 / within_s), partial(self._cancel, incoming.run_id))
        simulation.later(random.expovariate(1 / odds.between_requests_s), self._send_request)

    def _save(self, sample: SampleRequest, name: str) -> IncomingDocument:
        incoming = self._simulation.world.drop(sample.content, name)
        self._simulation.upload_or_message(incoming, "upload")
        self.requests[incoming.run_id] = SentRequest(incoming=incoming, sample=sample)
        return incoming

    def _publish(self, sample: SampleRequest) -> IncomingDocument:
        """With a key, a sender that got no response publishes the request again, as another message."""
        simulation, keyed = (
            self._simulation,
            self._simulation.random.random() < self._simulation.odds.with_key,
        )
        message: dict[str, object] = {"data": base64.b64encode(sample.content).decode()}
        if keyed:
            message["attributes"] = {"idempotency_key": f"key-{self._number}"}
        incoming = simulation.world.published({**message, "messageId": f"{self._number}"})
        simulation.upload_or_message(incoming, "message")
        if keyed and sample.valid and simulation.random.random() < simulation.odds.reused_key:
            data = base64.b64encode(simulation.random.choice(VALID).content).decode()
            other = simulation.world.published(
                {**message, "data": data, "messageId": f"{self._number}-other"}
            )
            simulation.upload_or_message(other, "message")
            self.keyed[incoming.run_id] = [incoming, other]
        if keyed and simulation.random.random() < simulation.odds.duplicate:
            again = simulation.world.published({**message, "messageId": f"{self._number}-again"})
            simulation.upload_or_message(again, "message")
            self.keyed.get(incoming.run_id, []).append(again)
        return incoming

    def _cancel(self, run_id: str) -> None:
        """Order the run to be cancelled, unless it has no record yet: no user could know its id."""
        if self._simulation.world.ledger.find(run_id) is None:
            return
        self.cancelled.add(run_id)
        order = json.dumps({"cancel": {"run": run_id}}).encode()
        incoming = self._simulation.world.drop(order, f"requests/end-{run_id}.json")

        def flow(services: Services) -> object:
            done = list(take_and_admit(services, incoming))
            self._simulation.tally.violations += self._simulation.checker.still_running(run_id)
            return done

        self._simulation.emit(Event(kind="order", flow=flow), may_be_dropped=False)

    def _forge(self, run_id: str) -> None:
        """Create a job with the run's label that is not the run's, and that ends at once with a log entry."""
        forged = self._simulation.jobs.forge(labelled(run_id))
        self._simulation.jobs.become(forged.name, JobState.SUCCEEDED)
        self._simulation.log_entry("forged entry", forged, tells_end=True)


class TrainingJobs:
    """Draws each created job's fate, and sends its log entries."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.deleted: set[str] = set()
        simulation.on_created = self._created

    def _created(self, job: Job) -> None:
        simulation, random, odds = self._simulation, self._simulation.random, self._simulation.odds
        (fate,) = random.choices(list(FATES), list(FATES.values()))
        work_s = random.expovariate(1 / odds.work_s) * (40 if random.random() < odds.long_work else 1)
        starts_s = random.expovariate(1 / odds.queue_s)
        starts_s += random.expovariate(1 / odds.held_s) if random.random() < odds.held else 0
        if fate == "is cancelled":  # by a user, at any time
            simulation.later(random.random() * (starts_s + work_s), partial(self._end, job.name, fate))
        if fate == "finds no capacity":  # it ends where others start
            simulation.later(starts_s, partial(self._end, job.name, fate))
            return
        simulation.later(starts_s, partial(self._become, job.name, JobState.RUNNING))
        simulation.later(starts_s + work_s, partial(self._end, job.name, fate))
        if random.random() < odds.forged_entry:
            at_s = random.random() * (starts_s + work_s)
            simulation.later(at_s, partial(simulation.log_entry, "forged entry", job, tells_end=True))
        if random.random() < odds.foreign_entry:
            foreign = Job(
                name=job_name(PROJECT, REGION, JobKind.CUSTOM, f"77{job.name[-3:]}77777"),
                state=JobState.SUCCEEDED,
            )
            simulation.log_entry("foreign entry", foreign, tells_end=True)

    def _end(self, name: str, fate: str) -> None:
        simulation = self._simulation
        try:
            job = simulation.jobs.read(name)
        except JobNotFound:
            return
        if job.state in END_OF:
            return
        match fate:
            case "fails" | "is lost" | "runs out of memory":
                self._become(name, JobState.FAILED)
                late_s = simulation.random.random() * ERROR_LATE_S
                simulation.later(late_s, partial(self._explain, name, ERRORS[fate]))
            case "finds no capacity":
                simulation.jobs.become(name, JobState.FAILED, ran=False)
                simulation.later(simulation.random.random() * ERROR_LATE_S, partial(self._stock_out, name))
            case "is cancelled":
                self._become(name, JobState.CANCELLED)
            case "expires":
                self._become(name, JobState.EXPIRED)
            case "is deleted":
                self._export(job, fate)
                self._become(name, JobState.SUCCEEDED)
                self._delete(job)
            case _:
                self._export(job, fate)
                self._become(name, JobState.SUCCEEDED)
                simulation.log_entry("export entry", job, tells_end=False)
        simulation.log_entry("end entry", job, tells_end=True)

    def _delete(self, job: Job) -> None:
        """Delete a job as a user would, once it is on record.

        If it were deleted earlier, it would be as if it had never existed: the run would get another job.
        """
        held = self._simulation.world.ledger.find(job.labels[RUN_LABEL])
        if held is not None and held.record.job is not None:
            self._simulation.jobs.remove(job.name)
            self.deleted.add(job.name)

    def _become(self, name: str, state: JobState) -> None:
        try:
            if self._simulation.jobs.read(name).state not in END_OF:
                self._simulation.jobs.become(name, state)
        except JobNotFound:
            return

    def _explain(self, name: str, error: Failure) -> None:
        self._simulation.jobs.become(name, JobState.FAILED, error=error)

    def _stock_out(self, name: str) -> None:
        error = Failure(message=f"Resources are insufficient in region: {job_region(name)}.", code=8)
        self._simulation.jobs.become(name, JobState.FAILED, error=error, ran=False)

    def _export(self, job: Job, fate: str) -> None:
        simulation = self._simulation
        prefix = f"{job.output_uri}/model/".removeprefix(f"gs://{MODELS}/")
        simulation.world.objects.write(MODELS, prefix + "saved_model.pb", b"graph", if_generation=None)
        if fate == "trains without a manifest":
            return
        manifest = export_manifest(f"gs://{MODELS}/{prefix}")
        metrics = {"accuracy": round(simulation.random.random(), 6), "loss": 1}
        content = json.dumps({**manifest, "metrics": metrics}).encode()
        if fate == "trains, its manifest damaged":
            content = content[:-20]
        simulation.world.objects.write(MODELS, prefix + "export.json", content, if_generation=None)
