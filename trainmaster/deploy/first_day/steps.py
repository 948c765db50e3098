"""The steps of a first day: commands that users run, and reads of what the services have after them."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.client.find import Run, read_document, read_run
from trainmaster.client.logs.read import LATE
from trainmaster.client.logs.survive import survive_restarts
from trainmaster.client.wait import READ_RETRY_S, poll
from trainmaster.deploy.first_day.day import TRAINMASTER, Day, StepFailed
from trainmaster.deploy.first_day.observed import (
    entries_of,
    jobs_of,
    listening,
    messages_on,
    refusals,
    topic_of_trigger,
)
from trainmaster.deploy.names import topology_of
from trainmaster.orchestrator.core.names import is_run_id, record_object
from trainmaster.orchestrator.core.runs.states import RunState

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

HERE = Path(__file__).resolve().parent
IMAGE, REQUESTS = HERE / "image", HERE / "requests"
NAMES = SMALL, TUNING, CANCELLED, FLEX_START = "small", "tuning", "cancelled", "flex_start"
DEPLOYED_WITHIN_S, WAIT_S, RECORDED_WITHIN_S = 3600.0, 1500.0, 120.0


def prepare_cloud(day: Day) -> bool:
    """Check, deploy, and build the program's image; whether runs can start."""
    project, region = day.context.project, day.context.region
    deploy = (*TRAINMASTER, "deploy", "--project", project, "--region", region)
    build = ("gcloud", "builds", "submit", str(IMAGE), "--config", str(IMAGE / "cloudbuild.yaml"))
    of_build = (f"--substitutions=_IMAGE={_image(day)}", f"--project={project}")
    day.step("gcloud", partial(day.command, "gcloud", ("gcloud", "version", "--format=json")))
    day.step("terraform", partial(day.command, "terraform", ("terraform", "version", "-json")))
    return (
        day.step("check", partial(day.command, "check", (*deploy, "--check")))
        and day.step("deploy", partial(day.command, "deploy", deploy, timeout_s=DEPLOYED_WITHIN_S))
        and day.step("image", partial(day.command, "image", (*build, *of_build)))
    )


def provide_image(day: Day, state: Path) -> bool:
    """Provide the program's image on the stack; whether runs can start."""
    words = (*TRAINMASTER, "stack", "provide", f"{_image(day)}={IMAGE}", "--state", str(state))
    return day.step("image", partial(day.command, "image", words))


def _image(day: Day) -> str:
    return f"{day.context.region}-docker.pkg.dev/{day.context.project}/trainmaster/first-day"


def examine(day: Day) -> None:
    """The doctor's findings."""
    state, project, region = day.context.state, day.context.project, day.context.region
    where = ("--project", project, "--region", region) if state is None else ("--state", str(state))
    day.step("doctor", partial(day.command, "doctor", (*TRAINMASTER, "doctor", *where)))


def take_runs(day: Day, clients: "Clients") -> None:
    """Submit every request, follow its run, and keep what the services have of it.

    Every run has ended afterwards, also after an interrupt; one that could not be ended is named.
    """
    files = [str(REQUESTS / f"first-day-{name}.yaml") for name in NAMES]
    with ExitStack() as open_until_the_end:
        heard: dict[str, str] = {}
        day.step("listen", lambda: _listen(clients, open_until_the_end, heard))
        try:
            day.step("submit", partial(day.trainmaster, "submit", "submit", *files, "-o", "name"))
            day.step("small", lambda: _wait(day, SMALL))
            day.step("cancel", lambda: _cancel(day, _reached(day, clients, CANCELLED, is_running)))
            day.step("tuning", lambda: _wait(day, TUNING))
            day.step("flex_start", lambda: _end_without_capacity(day, clients))
        finally:
            day.step("end", lambda: _end_all(day, clients))
            _read_all(day, clients, heard)


def run_ids(day: Day) -> dict[str, str]:
    """The run of each request that was sent."""
    sent = [line for line in day.seen.get("submit", {}).get("lines", ()) if is_run_id(line)]
    return {name: line for line in sent for name in NAMES if line.startswith(f"first-day-{name}-")}


def _run_id(day: Day, name: str) -> str:
    if name not in (sent := run_ids(day)):
        raise StepFailed("it was not sent")
    return sent[name]


def _listen(clients: "Clients", stack: ExitStack, heard: dict[str, str]) -> str:
    project = clients.context.project
    topics = topology_of(project, clients.context.region)["topics"]
    full = {role: f"projects/{project}/topics/{topics[role]}" for role in ("job_logs", "notices")}
    full["inbox"] = topic_of_trigger(clients, "on-request-uploaded")
    heard.update(stack.enter_context(listening(clients, full)))
    return f"to {', '.join(full)}"


def _wait(day: Day, name: str) -> str:
    run_id = _run_id(day, name)
    return day.trainmaster(name, "wait", run_id, "--timeout", f"{WAIT_S:g}s", timeout_s=WAIT_S + 60)


def _reached(day: Day, clients: "Clients", name: str, is_reached: Callable[[Run], bool]) -> Run:
    """The run once it has reached something, or has ended."""
    run_id = _run_id(day, name)

    def look() -> Run | None:
        run = survive_restarts(clients.context, lambda: read_run(clients, run_id, retry_s=READ_RETRY_S))
        return run if run.record.ended or is_reached(run) else None

    is_local = day.context.state is not None
    return poll(look, is_local=is_local, timeout_s=WAIT_S, late=lambda: f"{run_id} has not got there in time")


def _cancel(day: Day, run: Run) -> str:
    run_id = run.record.run_id
    if run.record.ended:
        raise StepFailed(f"{run_id} {run.record.state} before it could be cancelled")
    return day.trainmaster("cancel", "cancel", run_id, "--wait")


def _end_without_capacity(day: Day, clients: "Clients") -> str:
    """How the run ended, or what it waits for before it is cancelled: it would be tried again for days."""
    run = _reached(day, clients, FLEX_START, has_no_capacity)
    if run.record.ended:
        return f"{run.record.run_id} {run.record.state}"
    return f"no capacity. {_cancel(day, run)}"


def is_running(run: Run) -> bool:
    return run.record.state is RunState.RUNNING


def has_no_capacity(run: Run) -> bool:
    """Whether a job of the run ended without capacity, or the service refused one because there was none."""
    return bool(run.record.submission.abandoned_jobs or run.record.submission.tries)


def _end_all(day: Day, clients: "Clients") -> str:
    """Cancel every run that has not ended."""
    left = []
    for name, run_id in run_ids(day).items():
        try:
            _wait_until_recorded(clients, run_id)
            if not read_run(clients, run_id).record.ended:
                day.trainmaster(f"{name}.end", "cancel", run_id, "--wait")
        except Exception as error:  # the others must end, too
            left.append(f"{run_id} may be active until its job's timeout: {error}")
    if left:
        raise StepFailed("\n".join(left))
    return "no run is active"


def _wait_until_recorded(clients: "Clients", run_id: str) -> None:
    poll(
        lambda: read_document(clients, record_object(run_id)),
        is_local=clients.context.state is not None,
        timeout_s=RECORDED_WITHIN_S,
        late=lambda: f"it is not on record after {RECORDED_WITHIN_S:g} s",
    )


def _read_all(day: Day, clients: "Clients", heard: Mapping[str, str]) -> None:
    """What the services have of each run once late lines of its log are there, the messages, and refusals."""
    if day.context.state is None:
        time.sleep(LATE.total_seconds())
    for name, run_id in run_ids(day).items():
        day.step(f"read {name}", partial(_read_run, day, clients, name, run_id))
    day.step("read messages", lambda: _read_messages(day, clients, heard))
    day.step("read refusals", lambda: _read_refusals(day, clients))


def _read_run(day: Day, clients: "Clients", name: str, run_id: str) -> str:
    run = read_run(clients, run_id)
    jobs = jobs_of(clients, run.record)
    entries = entries_of(clients, run.record, jobs)
    day.seen |= {f"{name}.run": run.document, f"{name}.jobs": jobs, f"{name}.log": entries}
    return f"{len(jobs)} jobs, {len(entries)} log entries"


def _read_messages(day: Day, clients: "Clients", heard: Mapping[str, str]) -> str:
    day.seen["messages"] = found = {topic: messages_on(clients, each) for topic, each in heard.items()}
    return f"{sum(map(len, found.values()))} messages"


def _read_refusals(day: Day, clients: "Clients") -> str:
    small = day.seen.get(f"{SMALL}.run", {})
    ended_job = small.get("job", {}).get("name") if small.get("state") == RunState.SUCCEEDED else None
    day.seen["refusals"] = refusals(clients, ended_job)
    return ", ".join(f"{name} {each['status']}" for name, each in day.seen["refusals"].items())
