"""The steps of a first day. Once all is deployed, a failed one does not keep the next from what it finds."""

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tools.first_day.day import FirstDay, StepFailed, run_command
from tools.first_day.observed import entries_of, jobs_of, refusals
from trainmaster.client.clients import Clients
from trainmaster.client.context import Context
from trainmaster.client.errors import TimedOut
from trainmaster.client.find import read_run
from trainmaster.client.logs.read import LATE
from trainmaster.client.rules.orders import cancel_run
from trainmaster.client.submission.examination import examination_of
from trainmaster.client.submission.send import Sent, upload, wait_until_recorded
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import deployed_terms
from trainmaster.client.wait import wait_for_end
from trainmaster.orchestrator.core.events.self_test import NO_JOB_ID
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.version import VERSION

HERE = Path(__file__).resolve().parent
IMAGE, REQUESTS = HERE / "image", HERE / "requests"
TRAINMASTER = (sys.executable, "-m", "trainmaster")
WAIT_S, RECORDED_WITHIN_S = 900.0, 120.0


def take_day(day: FirstDay) -> None:
    """Take every step. Runs start only once all is deployed, and have ended afterwards, also after Ctrl-C."""
    began = datetime.now(UTC)
    for name, words in commands(day.context).items():
        if not day.take(name, partial(run_command, words)) and name != "doctor":
            return
    if not day.take("project number", day.know_details):
        return
    with Clients(day.context) as clients:
        try:
            day.take("save doctor", lambda: day.save("doctor.log", entries_of(clients, [NO_JOB_ID], began)))
            _take_runs(day, clients)
        finally:
            day.save("first_day", {"trainmaster": VERSION, "began": began.isoformat(), "steps": day.results})
            print(f"Saved in {day.folder}. What each file shows: docs/maintainers/judges.md")


def commands(context: Context) -> Mapping[str, Sequence[str]]:
    """Those of the steps before the runs, by name. A stack is deployed when it starts."""
    image = f"{context.region}-docker.pkg.dev/{context.project}/trainmaster/first-day"
    if context.state is not None:
        of_stack = ("--state", str(context.state))
        provide = (*TRAINMASTER, "stack", "provide", f"{image}={IMAGE}", *of_stack)
        return {"image": provide, "doctor": (*TRAINMASTER, "doctor", *of_stack)}
    where = ("--project", context.project, "--region", context.region)
    deploy = (*TRAINMASTER, "deploy", *where)
    build = ("gcloud", "builds", "submit", str(IMAGE), f"--config={IMAGE / 'cloudbuild.yaml'}")
    return {
        "check": (*deploy, "--check"),
        "deploy": deploy,
        "image": (*build, f"--substitutions=_IMAGE={image}", f"--project={context.project}"),
        "doctor": (*TRAINMASTER, "doctor", *where),
    }


def _take_runs(day: FirstDay, clients: Clients) -> None:
    sent: dict[str, Sent] = {}
    try:
        day.take("submit", partial(_submit_runs, clients, sent))
        for name, run in sent.items():
            day.take(name, partial(_follow_run, clients, name, run))
    finally:
        for name, run in sent.items():
            day.take(f"end {name}", partial(_cancel_run, clients, run))
        if clients.context.state is None:
            time.sleep(LATE.total_seconds())
        for name, run in sent.items():
            day.take(f"save {name}", partial(_save_run, day, clients, name, run.run_id))


def _submit_runs(clients: Clients, sent: dict[str, Sent]) -> None:
    terms = deployed_terms(clients)
    for name in RUNS:
        file = REQUESTS / f"first-day-{name}.yaml"
        ready = examination_of(RequestSource(file=str(file), content=file.read_bytes()), terms)
        if ready.faults:  # the deployment's policy does not allow it
            raise StepFailed(
                "\n".join(f"{file.name}: {fault.path}: {fault.problem}" for fault in ready.faults)
            )
        sent[name] = upload(clients, ready)


def _follow_run(clients: Clients, name: str, sent: Sent) -> str:
    act, good = RUNS[name]
    state = act(clients, sent)
    if good is not None and state is not good:
        raise StepFailed(f"{sent.run_id} {state}")
    return f"{sent.run_id} {state}"


def _wait_for_end(clients: Clients, sent: Sent) -> RunState:
    """The run's last state, or the one after WAIT_S: without capacity it would be tried again for days."""
    wait_until_recorded(clients, sent, timeout_s=RECORDED_WITHIN_S)
    try:
        return wait_for_end(clients, sent.run_id, timeout_s=WAIT_S).record.state
    except TimedOut:
        return read_run(clients, sent.run_id).record.state


def _cancel_run(clients: Clients, sent: Sent) -> RunState:
    """The run's last state: it is cancelled unless it has ended."""
    wait_until_recorded(clients, sent, timeout_s=RECORDED_WITHIN_S)
    if not (run := read_run(clients, sent.run_id)).record.ended:
        cancel_run(clients, run.record)
    return wait_for_end(clients, sent.run_id, timeout_s=WAIT_S).record.state


RUNS = {
    "small": (_wait_for_end, RunState.SUCCEEDED),
    "tuning": (_wait_for_end, RunState.SUCCEEDED),
    "cancelled": (_cancel_run, RunState.CANCELLED),  # it runs by now, for it was submitted with the others
    "flex_start": (_wait_for_end, None),
}
"""The requests in REQUESTS in the order of the steps: what is done to the run, and its state then; None: any."""


def _save_run(day: FirstDay, clients: Clients, name: str, run_id: str) -> str:
    run = read_run(clients, run_id)
    jobs = jobs_of(clients, run.record)
    ids = [job_id(job) for job in jobs]
    entries = entries_of(clients, ids, run.record.history[0].at) if ids else []
    for part, value in (("run", run.document), ("jobs", jobs), ("log", entries)):
        day.save(f"{name}.{part}", value)
    if name == "small" and run.record.job is not None:
        day.save("refusals", refusals(clients, run.record.job.name))
    return f"{len(jobs)} jobs, {len(entries)} log entries"
