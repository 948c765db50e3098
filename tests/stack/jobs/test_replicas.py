"""The files and variables that a replica sees, and its output, in each way of running it."""

import json
import marshal
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import run_to_end
from trainstack.jobs.images.dockerfile import read_image
from trainstack.jobs.replicas import rootfs
from trainstack.process.family import MARK
from trainstack.process.processes import SYSTEM_PATH
from trainstack.sandbox.probe import LAUNCHER

from .conftest import WAYS, Stack, Way, container, way_of

SERVICE = [
    "Waiting for job to be provisioned.",
    (
        "Vertex AI is provisioning job running framework. First time usage might take couple of minutes, "
        "and subsequent runs can be much faster."
    ),
    "Vertex AI is setting up this job.",
    "Waiting for training program to start.",
    "Job is preparing.",
    "Job is running.",
    "Tearing down training program.",
    "Finished tearing down training program.",
    "Job completed successfully.",
]


@pytest.fixture(params=WAYS, ids=way_of)
def each_way(start: Callable[..., Any], request: pytest.FixtureRequest) -> Iterator[Stack]:
    with start(**request.param) as running:
        yield running


def test_a_job_succeeds_and_its_service_lines_are_in_order(each_way: Stack) -> None:
    job = each_way.submit(container("print=hello"))
    assert job.state.name == "JOB_STATE_PENDING"
    ended = each_way.ended(job.name)
    assert ended.state.name == "JOB_STATE_SUCCEEDED"
    assert ended.create_time <= ended.start_time <= ended.end_time == ended.update_time
    assert each_way.service_lines(job.name) == SERVICE
    entries = each_way.logged(job.name)
    assert len({entry["insertId"] for entry in entries}) == len(entries)
    assert [entry["timestamp"] for entry in entries] == sorted(entry["timestamp"] for entry in entries)
    texts = each_way.texts(job.name)
    assert (
        texts.index("Job is preparing.")
        < texts.index("hello")
        < texts.index("Tearing down training program.")
    )


def test_a_replica_has_the_variables_of_service_image_and_job_and_none_of_ours(
    each_way: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "leaked")
    (each_way.buckets / "b").mkdir()
    env = [{"name": "OUT", "value": "$(AIP_MODEL_DIR)x"}, {"name": "FROM_IMAGE", "value": "overridden"}]
    job = each_way.submit(
        container("tell", env=env), base_output_directory={"output_uri_prefix": "gs://b/out"}
    )
    each_way.ended(job.name)
    told = each_way.told(job.name)
    found = told["environ"]
    root = found.pop("TRAINMASTER_GCS_ROOT", None)
    assert (root is None) == (told["cwd"] == "/app")
    assert root in {None, str(each_way.buckets)}
    assert set(found) == {
        "CLOUD_ML_JOB_ID", "CLOUD_ML_PROJECT_ID", "CLUSTER_SPEC", "AIP_MODEL_DIR", "AIP_CHECKPOINT_DIR",
        "AIP_TENSORBOARD_LOG_DIR", "GREETING", "FROM_IMAGE", "OUT", "PATH", "HOME", "TMPDIR", "LANG", MARK,
    }  # fmt: skip
    assert found["OUT"] == "gs://b/out/model/x"
    assert found["FROM_IMAGE"] == "overridden"
    assert found["GREETING"] == "hello"
    assert found["CLOUD_ML_JOB_ID"] == job.name.rpartition("/")[2]
    assert found["CLOUD_ML_PROJECT_ID"] == job.name.split("/")[1]
    own, _, rest = found["PATH"].partition(":")
    assert own.endswith("/python/bin")
    assert rest.endswith(f":/opt/venv/bin:{SYSTEM_PATH}")  # of the image's ENV PATH=/opt/venv/bin:$PATH
    spec = json.loads(found["CLUSTER_SPEC"])
    assert spec["job"]["worker_pool_specs"][0]["machine_spec"] == {"machine_type": "n1-standard-4"}
    assert not Path(found["HOME"]).exists()


def test_every_replica_of_every_pool_runs_with_its_place_in_one_cluster(stack: Stack) -> None:
    others = ("workerpool1-0", "workerpool1-1", "workerpool3-0")
    told = [f"write=up/{name}@{name}" for name in others]
    job = stack.submit(
        container("tell", *(f"wait=up/{name}" for name in others)),
        container("tell", *told, replicas=2),
        {},
        container("tell", *told),
    )
    stack.ended(job.name)
    clusters = []
    for task in ("workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool3-0"):
        environ = stack.told(job.name, task)["environ"]
        pool, _, index = task.partition("-")
        assert json.loads(environ["CLUSTER_SPEC"])["task"] == {"type": pool, "index": int(index), "trial": ""}
        clusters.append(json.loads(environ["TF_CONFIG"])["cluster"])
    assert all(cluster == clusters[0] for cluster in clusters)
    assert {role: len(members) for role, members in clusters[0].items()} == {"chief": 1, "worker": 2}
    assert "RANK" not in stack.told(job.name, "workerpool3-0")["environ"]
    addresses = [address for members in clusters[0].values() for address in members]
    assert len(set(addresses)) == 3
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_both_replicas_are_of_one_group_of_pytorch_unless_their_own_env_says_otherwise(stack: Stack) -> None:
    own = [{"name": "MASTER_PORT", "value": "$(RANK)0"}, {"name": "WORLD_SIZE", "value": "9"}]
    job = stack.submit(container("tell", "wait=up/one"), container("tell", "write=up/one", env=own))
    stack.ended(job.name)
    chief, worker = (stack.told(job.name, f"workerpool{pool}-0")["environ"] for pool in (0, 1))
    address = json.loads(chief["CLUSTER_SPEC"])["cluster"]["workerpool0"][0]
    assert f"{chief['MASTER_ADDR']}:{chief['MASTER_PORT']}" == address
    assert (chief["RANK"], chief["WORLD_SIZE"]) == ("0", "2")
    assert (worker["MASTER_ADDR"], worker["RANK"]) == (chief["MASTER_ADDR"], "1")
    assert (worker["MASTER_PORT"], worker["WORLD_SIZE"]) == ("10", "9")


def test_buckets_are_files_also_one_made_while_the_replica_runs(each_way: Stack) -> None:
    job = each_way.submit(container("write=made-by-it/deep/object", "wait=made-later/object", "print=seen"))
    each_way.until(job.name, lambda job: job.state.name == "JOB_STATE_RUNNING")
    (each_way.buckets / "made-later").mkdir()
    (each_way.buckets / "made-later" / "object").touch()
    assert each_way.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert (each_way.buckets / "made-by-it" / "deep" / "object").read_text() == "workerpool0-0"
    assert not Path("/gcs").exists()


@pytest.mark.parametrize(
    ("program", "repair"), [("no-such-program", ""), ("--steps=2", ": args replace the image's CMD")]
)
def test_a_program_that_is_not_there_fails_the_job_with_the_shells_status(
    each_way: Stack, program: str, repair: str
) -> None:
    job = each_way.submit(container(command=[program]))
    ended = each_way.ended(job.name)
    assert "The replica workerpool0-0 exited with a non-zero status of 127." in ended.error.message
    (text,) = each_way.texts(job.name, "workerpool0-0")
    assert text.startswith(f"{program!r}: executable file not found in $PATH{repair}")


def test_output_errors_and_json_lines_become_entries_of_the_replicas_log(stack: Stack) -> None:
    line = json.dumps({"severity": "warning", "message": "m", "logging.googleapis.com/labels": {"k": "v"}})
    job = stack.submit(container("print=plain", "complain=bad", f"print={line}@"))
    stack.ended(job.name)
    job_id = job.name.rpartition("/")[2]
    entries = stack.logged(job.name, "workerpool0-0")
    for entry in entries:
        assert entry["logName"] == "projects/p1/logs/workerpool0-0"
        assert entry["resource"] == {
            "type": "ml_job",
            "labels": {"job_id": job_id, "project_id": "p1", "task_name": "workerpool0-0"},
        }
        assert entry["labels"]["ml.googleapis.com/job_id"] == job_id
    kinds = {entry["severity"]: entry for entry in entries}
    assert len(entries) == len(kinds) == 3
    assert kinds["INFO"]["textPayload"] == "plain"
    assert kinds["ERROR"]["jsonPayload"]["attrs"] == {"tag": "workerpool0-0"}
    assert kinds["WARNING"]["labels"]["k"] == "v"


def test_an_image_that_is_not_provided_fails_the_job_with_the_repair(stack: Stack) -> None:
    job = stack.submit(container(image="gcr.io/p/unknown:1"))
    ended = stack.ended(job.name)
    assert ended.state.name == "JOB_STATE_FAILED"
    expected = ended.error.message
    words, way_out = expected.split(" Provide it with: ")
    assert (
        words
        == "Failed to read the container uri [gcr.io/p/unknown:1]. Please make sure that the image exists."
    )
    assert way_out.startswith(
        "trainmaster stack provide gcr.io/p/unknown=DIR, where DIR has its Dockerfile; provided: "
    )
    assert stack.service_lines(job.name)[-2:] == [expected, "Job failed."]


@pytest.mark.parametrize("way", WAYS, ids=way_of)
def test_a_workdir_inside_a_directory_of_the_host_works_and_stays_out_of_it(
    way: Way, start: Callable[..., Any], tmp_path: Path
) -> None:
    tree = tmp_path / "image"
    tree.mkdir()
    (tree / "Dockerfile").write_text(
        "FROM scratch\nWORKDIR /usr/src/some-app\nCOPY hello.py .\nCMD python hello.py && touch made-by-it\n"
    )
    (tree / "hello.py").write_text("print('hello')\n")
    with start(**way, images={"example.com/hello:1": tree}) as stack:
        job = stack.submit(container(image="example.com/hello"))
        assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
        assert stack.texts(job.name, "workerpool0-0") == ["hello"]
    assert sorted(path.name for path in tree.iterdir()) == ["Dockerfile", "hello.py"]
    assert not Path("/usr/src/some-app").exists()


if len(WAYS) > 1:

    def test_copied_files_are_at_their_paths_in_a_private_root_that_leaves_no_trace(
        start: Callable[..., Any],
    ) -> None:
        before = sorted(Path("/").iterdir())
        with start() as stack:
            job = stack.submit(container("show=/data/note.txt"))
            assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
            assert stack.texts(job.name, "workerpool0-0") == ["a note"]
        assert sorted(Path("/").iterdir()) == before

    def test_files_removed_from_a_shared_directory_are_skipped(tmp_path: Path) -> None:
        shared = tmp_path / "shared"
        shared.mkdir()
        (shared / "folder").mkdir()
        for name in ("kept", "vanishing"):
            (shared / name).touch()
        steps = steps_for(shared / "app", tmp_path)
        (shared / "vanishing").unlink()
        (shared / "folder").rmdir()
        assert (
            printed(f"sorted(os.listdir({str(shared)!r}))", steps, shared / "app", tmp_path)
            == "['app', 'kept']"
        )

    def test_a_directory_on_the_way_to_the_workdir_is_one_mount_however_much_is_in_it(tmp_path: Path) -> None:
        crowded, workdir = tmp_path / "crowded", tmp_path / "crowded" / "way" / "app"
        workdir.mkdir(parents=True)
        (workdir / "of-the-host").touch()
        steps = steps_for(workdir, tmp_path)
        for number in range(50):
            (crowded / f"{number}").touch()
        assert steps_for(workdir, tmp_path) == steps
        look = f"len(os.listdir({str(crowded)!r})), os.listdir(), open('made', 'w').close()"
        assert printed(look, steps, workdir, tmp_path) == "51 ['of-the-host'] None"
        assert [path.name for path in workdir.iterdir()] == ["of-the-host"]

    def steps_for(workdir: Path, folder: Path) -> list[rootfs.Step]:
        tree, buckets = folder / "image", folder / "buckets"
        for directory in (tree, buckets):
            directory.mkdir(exist_ok=True)
        (tree / "Dockerfile").write_text(f"FROM scratch\nWORKDIR {workdir}\nCMD true\n")
        return rootfs.private_steps(read_image(tree), buckets)

    def printed(expression: str, steps: list[rootfs.Step], workdir: Path, folder: Path) -> str:
        """What a program prints in a file tree that these steps build."""
        root, plan = folder / "root", folder / "plan"
        root.mkdir()
        plan.write_bytes(
            marshal.dumps(
                {
                    "private": True,
                    "root": str(root),
                    "steps": steps,
                    "workdir": str(workdir),
                    "argv": [sys.executable, "-c", f"import os; print({expression})"],
                    "grace_s": 1,
                    "stack": os.getpid(),
                    "name": f"trainmaster-test-{os.getpid()}",
                    "network": None,
                }
            )
        )
        done = run_to_end([sys.executable, "-I", "-S", str(LAUNCHER), str(plan)])
        assert done.stderr == ""
        return done.stdout.strip()
