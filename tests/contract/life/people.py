"""Who acts on a deployment from outside: users who ask, jobs that train and end, and somebody who forges."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tests.contract.life.asking import Asked, drawn
from tests.contract.life.life import Event, Life
from tests.contract.world import MODELS, PROJECT, REGION, export_manifest, labelled
from trainmaster.orchestrator.core.errors import JobNotFound
from trainmaster.orchestrator.core.names import RUN_LABEL, JobKind, job_name, job_region
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState
from trainmaster.orchestrator.core.runs.states import END_OF
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.services import Services

NAMES = 50
"""Names that users write over again and again."""
ERROR_LATE_S = 60.0
FATES: Mapping[str, float] = {
    "trains": 0.80,
    "trains without a manifest": 0.03,
    "trains, its manifest damaged": 0.02,
    "fails": 0.04,
    "finds no capacity": 0.03,
    "is cancelled": 0.05,
    "expires": 0.02,
    "is deleted": 0.01,
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for, and what it must come to."""

    incoming: IncomingDocument
    asked: Asked


class Users:
    """They drop files, some again under the same name, and publish messages, some twice with one key.

    `ended` are the runs that they ordered to end.
    """

    def __init__(self, life: Life, events: int) -> None:
        self._life = life
        self._events = events
        self._number = 0
        self.requests: dict[str, Request] = {}
        self.ended: set[str] = set()
        life.later(0.0, self._ask)

    def _ask(self) -> None:
        life, random, odds = self._life, self._life.random, self._life.odds
        if life.tally.events >= self._events:
            return
        self._number += 1
        asked = drawn(random, odds.faulty)
        if random.random() < odds.message:
            incoming = self._publish(asked)
        else:
            again = random.random() < odds.overwriting
            number = random.randrange(NAMES) if again else NAMES + self._number
            incoming = life.world.drop(asked.content, f"requests/{number}.json")
            life.upload_or_message(incoming, "upload")
        self.requests[incoming.run_id] = Request(incoming=incoming, asked=asked)
        if random.random() < odds.forged_job:
            self._forge(incoming.run_id)
        if random.random() < odds.ordered_to_end:
            within_s = odds.queue_s + odds.work_s
            life.later(random.expovariate(1 / within_s), partial(self._end, incoming.run_id))
        life.later(random.expovariate(1 / odds.arrival_s), self._ask)

    def _publish(self, asked: Asked) -> IncomingDocument:
        """With a key, the sender publishes it a second time, as another message, for it got no answer."""
        life, keyed = self._life, self._life.random.random() < self._life.odds.with_key
        message: dict[str, object] = {"data": base64.b64encode(asked.content).decode()}
        if keyed:
            message["attributes"] = {"idempotency_key": f"key-{self._number}"}
        incoming = life.world.published({**message, "messageId": f"{self._number}"})
        life.upload_or_message(incoming, "message")
        if keyed and life.random.random() < life.odds.duplicate:
            again = life.world.published({**message, "messageId": f"{self._number}-again"})
            life.upload_or_message(again, "message")
        return incoming

    def _end(self, run_id: str) -> None:
        """A run whose id nobody can read anywhere yet is left alone."""
        if self._life.world.ledger.find(run_id) is None:
            return
        self.ended.add(run_id)
        order = json.dumps({"cancel": {"run": run_id}}).encode()
        incoming = self._life.world.drop(order, f"requests/end-{run_id}.json")

        def flow(services: Services) -> object:
            done = list(take_and_admit(services, incoming))
            self._life.tally.violations += self._life.watch.goes_on(run_id)
            return done

        self._life.emit(Event(kind="order", flow=flow), may_be_dropped=False)

    def _forge(self, run_id: str) -> None:
        """Somebody creates a job with the run's label, which ends at once, and whose log says so."""
        forged = self._life.jobs.forge(labelled(run_id))
        self._life.jobs.become(forged.name, JobState.SUCCEEDED)
        self._life.log_entry("forged entry", forged, tells_end=True)


class Trainers:
    """Every job that is created has its fate, and log entries tell of it."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.deleted: set[str] = set()
        life.on_created = self._created

    def _created(self, job: Job) -> None:
        life, random, odds = self._life, self._life.random, self._life.odds
        (fate,) = random.choices(list(FATES), list(FATES.values()))
        work_s = random.expovariate(1 / odds.work_s) * (40 if random.random() < odds.long_work else 1)
        starts_s = random.expovariate(1 / odds.queue_s)
        if fate == "is cancelled":  # by a user, at any time
            life.later(random.random() * (starts_s + work_s), partial(self._end, job.name, fate))
        if fate == "finds no capacity":  # it ends where others start
            life.later(starts_s, partial(self._end, job.name, fate))
            return
        life.later(starts_s, partial(self._become, job.name, JobState.RUNNING))
        life.later(starts_s + work_s, partial(self._end, job.name, fate))
        if random.random() < odds.forged_entry:
            at_s = random.random() * (starts_s + work_s)
            life.later(at_s, partial(life.log_entry, "forged entry", job, tells_end=True))
        if random.random() < odds.foreign_entry:
            foreign = Job(
                name=job_name(PROJECT, REGION, JobKind.CUSTOM, f"77{job.name[-3:]}77777"),
                state=JobState.SUCCEEDED,
            )
            life.log_entry("foreign entry", foreign, tells_end=True)

    def _end(self, name: str, fate: str) -> None:
        life = self._life
        try:
            job = life.jobs.read(name)
        except JobNotFound:
            return
        if job.state in END_OF:
            return
        match fate:
            case "fails":
                self._become(name, JobState.FAILED)
                life.later(life.random.random() * ERROR_LATE_S, partial(self._explain, name))
            case "finds no capacity":
                life.jobs.become(name, JobState.FAILED, ran=False)
                life.later(life.random.random() * ERROR_LATE_S, partial(self._stock_out, name))
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
                life.log_entry("export entry", job, tells_end=False)
        life.log_entry("end entry", job, tells_end=True)

    def _delete(self, job: Job) -> None:
        """By a user, who sees it on record.

        One deleted before that is as if it had never been: whoever takes the run over gives it another.
        """
        held = self._life.world.ledger.find(job.labels[RUN_LABEL])
        if held is not None and held.record.job is not None:
            self._life.jobs.remove(job.name)
            self.deleted.add(job.name)

    def _become(self, name: str, state: JobState) -> None:
        try:
            if self._life.jobs.read(name).state not in END_OF:
                self._life.jobs.become(name, state)
        except JobNotFound:
            return

    def _explain(self, name: str) -> None:
        error = Failure(message="The replica workerpool0-0 exited with a non-zero status of 1.", code=13)
        self._life.jobs.become(name, JobState.FAILED, error=error)

    def _stock_out(self, name: str) -> None:
        error = Failure(message=f"Resources are insufficient in region: {job_region(name)}.", code=8)
        self._life.jobs.become(name, JobState.FAILED, error=error, ran=False)

    def _export(self, job: Job, fate: str) -> None:
        life = self._life
        prefix = f"{job.output_uri}/model/".removeprefix(f"gs://{MODELS}/")
        life.world.objects.write(MODELS, prefix + "saved_model.pb", b"graph", if_generation=None)
        if fate == "trains without a manifest":
            return
        manifest = export_manifest(f"gs://{MODELS}/{prefix}")
        metrics = {"accuracy": round(life.random.random(), 6), "loss": 1}
        content = json.dumps({**manifest, "metrics": metrics}).encode()
        if fate == "trains, its manifest damaged":
            content = content[:-20]
        life.world.objects.write(MODELS, prefix + "export.json", content, if_generation=None)
