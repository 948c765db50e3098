"""A run is admitted with a later candidate after a full quota or a stockout, or later once there is quota."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from google.api_core.exceptions import DeadlineExceeded
from google.cloud.pubsub_v1 import SubscriberClient
from google.pubsub_v1 import Subscription

from trainstack.events.clients import clients_of

from .project import ROOT, Project, request, running_project
from .proxied import quick_topology
from .reckoning import RUN_LABEL, custom_jobs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

T4 = {"machine": "n1-standard-4", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}
PAUSE_S = 90  # the first back-off of a run without quota, on a shared machine


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("admission")
    arguments = ("--tick-s", "1", "--retry-min-s", "0.5", "--retry-max-s", "3")
    topology = quick_topology(folder)
    with running_project(
        folder / "state", "--topology", str(topology), *arguments, project="e2e-admission"
    ) as project:
        yield project


@pytest.fixture
def full(running: Project) -> Iterator[Project]:
    """The stack, for a test that fills its quotas; they are free again for the next test."""
    yield running
    put_quota(running)


def put_quota(project: Project, **document: object) -> None:
    answer = httpx.put(f"{project.env['VERTEX_EMULATOR_HOST']}/emulator/v1/quota", json=document, timeout=60)
    assert answer.status_code == 200, answer.text


def record_of(project: Project, name: str) -> dict[str, Any] | None:
    found = [r for r in project.records().values() if r["source"]["object_name"] == name]
    return found[0] if found else None


def test_a_run_goes_through_its_candidates_past_a_full_quota_and_a_stockout(full: Project) -> None:
    stockout = {"resource": "NVIDIA_TESLA_T4", "spot": True}
    put_quota(full, quotas={full.region: {"NVIDIA_TESLA_T4": 0}}, stockouts=[stockout])
    fallbacks = [
        {"scheduling": {"spot": True}},
        {"cluster": {"chief": {"accelerator": None}}, "scheduling": {"spot": False}},
    ]
    full.upload("requests/candidates.yaml", request(full.id, cluster={"chief": T4}, fallbacks=fallbacks))
    status = full.final_status("requests/candidates.yaml")
    assert status["state"] == "succeeded"
    record = full.record(status["run_id"])
    assert record["submission"]["candidate"] == 2
    assert [each["candidate"] for each in record["submission"]["tries"]] == [0, 1]
    refused, out_of_stock = (each["outcome"] for each in record["submission"]["tries"])
    assert "custom_model_training_nvidia_t4_gpus" in refused
    assert "Resources are insufficient in region" in out_of_stock
    (given_up,) = record["submission"]["abandoned_jobs"]
    jobs = {job.name: job for job in full.jobs(status["run_id"])}
    assert set(jobs) == {given_up["job"], record["job"]["name"]}
    assert jobs[given_up["job"]].state.name == "JOB_STATE_FAILED"
    pool = jobs[record["job"]["name"]].job_spec.worker_pool_specs[0]
    assert not pool.machine_spec.accelerator_count


def test_a_run_without_quota_waits_and_is_submitted_once_there_is_some(full: Project) -> None:
    put_quota(full, quotas={full.region: {"replicas": 0}})
    before = len(custom_jobs(full))
    full.upload("requests/waits.yaml", request(full.id))

    def waits() -> dict[str, Any] | None:
        """For quota: it may first have waited behind a run that was just submitted."""
        record = record_of(full, "requests/waits.yaml")
        waiting = ((record or {}).get("admission") or {}).get("waiting") or {}
        return record if "exceed quota limits" in waiting.get("reason", "") else None

    record = full.eventually(waits, "the run waits for quota")
    assert record is not None
    assert record["state"] == "waiting"
    assert len(custom_jobs(full)) == before
    put_quota(full)
    full.eventually(
        lambda: (full.status("requests/waits.yaml") or {}).get("state") == "succeeded",
        "the run went",
        deadline_s=PAUSE_S,
    )
    assert len(full.jobs(record["run_id"])) == 1


def test_an_order_cancels_a_waiting_run_and_a_running_one(full: Project) -> None:
    long = request(full.id, f"--wait-for=gs://{full.models}/never")
    full.upload("requests/goes-on.yaml", long)
    full.eventually(lambda: state_of(full, "requests/goes-on.yaml") == "running", "the job is running")
    put_quota(full, quotas={full.region: {"replicas": 0}})
    full.upload("requests/queued.yaml", long)
    full.eventually(lambda: state_of(full, "requests/queued.yaml") == "waiting", "the run waits")
    for name in ("queued", "goes-on"):
        run_id = (full.status(f"requests/{name}.yaml") or {})["run_id"]
        order = json.dumps({"cancel": {"run": run_id}})
        generation = full.upload(f"requests/end-{name}.yaml", order)
        assert full.final_status(f"requests/end-{name}.yaml", generation)["record_uri"].endswith(
            f"/runs/{run_id}.json"
        )
        assert full.final_status(f"requests/{name}.yaml")["state"] == "cancelled"
        jobs = [job.state.name for job in full.jobs(run_id)]
        assert jobs == ([] if name == "queued" else ["JOB_STATE_CANCELLED"])


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A stack whose policy lets one job of a model run at a time."""
    folder = tmp_path_factory.mktemp("limited")
    arguments = (
        "--topology",
        str(with_admission(folder, limits=[{"jobs": 1, "per": "model"}])),
        "--tick-s",
        "2",
    )
    with running_project(folder / "state", *arguments, project="e2e-limited") as project:
        yield project


def with_admission(folder: Path, **admission: object) -> Path:
    """The project's own topology, and its policy with this admission."""
    policy = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    (folder / "policy.yaml").write_text(yaml.safe_dump({**policy, "admission": admission}))
    path = quick_topology(folder)
    topology = yaml.safe_load(path.read_text())
    topology["environment"]["TRAINMASTER_POLICY"] = str(folder / "policy.yaml")
    path.write_text(yaml.safe_dump(topology))
    return path


def state_of(project: Project, name: str) -> str | None:
    status = project.status(name)
    return str(status["state"]) if status else None


def test_under_a_limit_of_one_the_higher_priority_goes_first_and_no_two_run_at_once(limited: Project) -> None:
    waiting = f"--wait-for=gs://{limited.models}/go"
    limited.upload("requests/first.yaml", request(limited.id, waiting))
    limited.eventually(lambda: state_of(limited, "requests/first.yaml") == "running", "the first runs")
    for name, priority in (("low", 10), ("middle", 50), ("high", 90)):
        path = f"requests/{name}.yaml"
        limited.upload(path, request(limited.id, priority=priority))
        limited.eventually(partial(_waits, limited, path), f"{name} waits")
    limited.upload("requests/other.yaml", request(limited.id, model_name="other"))
    # The limit is each model's own.
    assert limited.final_status("requests/other.yaml")["state"] == "succeeded"
    limited.storage.bucket(limited.models).blob("go").upload_from_string("go")
    jobs = []
    for name in ("first", "high", "middle", "low"):
        status = limited.final_status(f"requests/{name}.yaml")
        assert status["state"] == "succeeded"
        jobs += limited.jobs(status["run_id"])
    assert len(jobs) == 4
    for before, after in pairwise(jobs):
        assert before.end_time <= after.create_time, [(job.display_name, job.create_time) for job in jobs]
    slots = limited.folder(limited.ledger) / "slots"
    limited.eventually(lambda: not [p for p in slots.rglob("*") if p.is_file()], "every slot is given back")


def _waits(project: Project, name: str) -> bool:
    return state_of(project, name) == "waiting"


def test_a_storm_ends_in_one_notice_and_as_many_runs_as_the_cap_allows(tmp_path: Path) -> None:
    most, storm = 4, 12
    arguments = ("--topology", str(with_admission(tmp_path, caps={"runs_per_hour": most})), "--tick-s", "2")
    with (
        running_project(tmp_path / "state", *arguments, project="e2e-storm") as project,
        notices_of(project) as notices,
    ):
        with ThreadPoolExecutor(6) as pool:
            names = [f"requests/storm-{number}.yaml" for number in range(storm)]
            list(pool.map(partial(project.upload, content=request(project.id)), names))
        ends = Counter(project.final_status(name)["state"] for name in names)
        records = list(project.records().values())
        assert len(records) == storm
        refused = [record for record in records if record["state"] == "rejected"]
        windows = {record["rejection"]["cap"] for record in refused}
        # One hour's cap, or that of two when the clock struck meanwhile.
        hours = {step["at"][:13] for record in records for step in record["history"]}
        hours |= {record["source"]["received_at"][:13] for record in records}
        assert storm - most * len(hours) <= len(refused) <= storm - most, ends
        assert all(window.startswith("runs_per_hour/") for window in windows)
        assert all("runs_per_hour" in record["problems"][0] for record in refused)
        jobs = {job.labels[RUN_LABEL] for job in custom_jobs(project)}
        assert jobs == {record["run_id"] for record in records} - {record["run_id"] for record in refused}
        told = {f"caps/{window}" for window in windows}
        project.eventually(lambda: told <= notices.ids(), "a notice of the cap")
        assert notices.ids() == told


class CapNotices:
    """The notices of caps that were published."""

    def __init__(self, subscriber: SubscriberClient, subscription: str) -> None:
        self._subscriber, self._subscription = subscriber, subscription
        self._ids: set[str] = set()

    def ids(self) -> set[str]:
        try:
            pulled = self._subscriber.pull(subscription=self._subscription, max_messages=1000, timeout=2)
        except DeadlineExceeded:  # no message at the moment
            return self._ids
        self._ids |= {json.loads(each.message.data)["id"] for each in pulled.received_messages}
        if acknowledged := [each.ack_id for each in pulled.received_messages]:
            self._subscriber.acknowledge(subscription=self._subscription, ack_ids=acknowledged)
        return self._ids


@contextmanager
def notices_of(project: Project) -> Iterator[CapNotices]:
    name = f"projects/{project.id}/subscriptions/storm"
    with clients_of(project.env["PUBSUB_EMULATOR_HOST"]) as clients:
        wanted = Subscription(
            name=name,
            topic=f"projects/{project.id}/topics/trainmaster-notices",
            filter='attributes.type="trainmaster.cap.reached.v1"',
        )
        clients.subscriber.create_subscription(request=wanted)
        yield CapNotices(clients.subscriber, name)
