"""The likely repair follows from the error's words, and is not guessed."""

import pytest

from tests.client.served import run_record
from trainmaster.client.runs.repairs import likely_repair, repair_of
from trainmaster.orchestrator.core.completion.error_repair import with_repair
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.record import RunRecord


def recorded(**changes: object) -> RunRecord:
    return decoded(RunRecord, run_record("failed", **changes))


RUN = "request-20261123t021008-ca4778377e"


@pytest.mark.parametrize(
    ("error", "repair"),
    [
        ("MemoryError: Unable to allocate 8 GiB", "a smaller batch"),
        ("workerpool0-0: killed (SIGKILL), usually because it ran out of memory", "with more memory"),
        ("The replica workerpool0-0 exited with a non-zero status of 139.", "PYTHONFAULTHANDLER=1"),
        ("ModuleNotFoundError: No module named 'xgboost'", "requirements.txt"),
        ("Forbidden: 403 GET https://storage.googleapis.com/…", "service account"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", "the script's folder"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/gcs/data/a.csv'", "the bucket 'data'"),
        ("google.api_core.exceptions.NotFound: 404 No such object: data/a.csv", "project and region"),
        ("ValueError: Input X contains NaN.", "missing values"),
        ("the loss became nan at step 3", "learning rate"),
    ],
)
def test_a_known_error_has_its_repair(error: str, repair: str) -> None:
    assert repair in (likely_repair(error) or "")


@pytest.mark.parametrize(
    "error",
    [
        "InvalidParameterError: The 'C' parameter of SVC must be a float in the range (0.0, inf]. Got -1.0 instead.",
        "AssertionError",
        "ValueError: bad token 403",
        "RuntimeError: cannot restart iterator",
        "KeyError: 'permission_level'",
        "ValueError: the timeout column does not exist",
        "PermissionError: [Errno 13] Permission denied: '/data'",
        "DeadlineExceeded: 504 the metadata server did not answer",
        "",
    ],
)
def test_an_error_that_says_nothing_known_has_none(error: str) -> None:
    assert likely_repair(error) is None


@pytest.mark.parametrize(
    "error",
    [
        "FileNotFoundError: [Errno 2] No such file or directory: '{}/model.joblib'",
        "RuntimeError: Parent directory {} does not exist.",
    ],
    ids=["open", "torch.save"],
)
@pytest.mark.parametrize("root", ["/gcs/models", "/mnt/buckets/models"])
def test_a_folder_of_the_run_itself_is_to_be_made_and_any_other_to_be_looked_for(
    error: str, root: str
) -> None:
    own, other = (Failure(message=error.format(f"{root}/starter/{run}/model")) for run in (RUN, "another"))
    assert "os.makedirs(folder, exist_ok=True)" in (repair_of(own, RUN) or "")
    assert "makedirs" not in (repair_of(other, RUN) or "")


@pytest.mark.parametrize("runs_script", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        "ModuleNotFoundError: No module named 'xgboost'",
        "ModuleNotFoundError: No module named 'yaml'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'gs://models/m.pkl'",
    ],
)
def test_a_repair_that_the_message_states_is_not_repeated(error: str, *, runs_script: bool) -> None:
    failure = Failure(message=with_repair(error, runs_script=runs_script), last_lines=(error,))
    assert failure.message != error
    assert repair_of(failure, RUN) is None


def test_of_a_failed_tuning_the_repair_names_its_limit_of_failed_trials() -> None:
    message = "3 of 3 trials are infeasible; the first, trial 1: ValueError: odd depth is bad"
    assert "`tuning.max_failed_trials`" in (repair_of(Failure(message=message), RUN) or "")


def test_a_run_that_timed_out_may_be_continued_and_a_tuning_may_not() -> None:
    failure = Failure(message="the job ran longer than its timeout of 60 s")
    named = f"trainmaster again {RUN} --continue"
    assert named in (repair_of(failure, RUN, recorded()) or "")
    tuned = decoded(RunRecord, run_record("tuned"))
    assert named not in (repair_of(failure, RUN, tuned) or named)


def test_of_a_tuning_whose_metric_was_never_reported_the_repair_is_to_report_it() -> None:
    message = (
        "3 of 3 trials are infeasible; the first, trial 1: The trial ended without reporting the metric 'a'"
    )
    record = recorded(problems=["no trial reported the metric 'a' (3 infeasible). If trials ran"])
    repair = repair_of(Failure(message=message), RUN, record) or ""
    assert repair.startswith(
        "let the chief report the tuning's metric with report_hyperparameter_tuning_metric"
    )
    assert "max_failed_trials" not in repair


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (
            "n1-standard-4",
            ": n1-standard-4 has 15 GB; n1-highmem-4 has 26 GB; `scheduling: {retries: 1, retry_on: [out_of_memory]}` ",
        ),
        ("n1-highmem-96", ": n1-highmem-96 has 624 GB; `scheduling.disable_retries` leaves out "),
        ("a2-highgpu-2g", ": a2-highgpu-2g has 170 GB; a2-highgpu-4g has 340 GB; `scheduling: "),
        ("x9-mega-4", None),
    ],
)
def test_a_replica_that_was_killed_is_told_its_memory_and_the_next_machine(
    machine: str, said: str | None
) -> None:
    killed = Failure(
        message="workerpool1-0: killed (SIGKILL): it ran out of memory.", replica="workerpool1-0"
    )
    cluster = {"chief": {"machine": "e2-standard-4"}, "workers": {"machine": machine}}
    found = run_record("failed")
    found["request"]["document"]["cluster"] = cluster
    record = recorded(request=found["request"])
    known = "use a smaller batch, or a machine or accelerator with more memory"
    repair = repair_of(killed, RUN, record) or ""
    assert repair == known if said is None else repair.startswith(f"{known}{said}")
    on_gpu = Failure(message="torch.OutOfMemoryError: CUDA out of memory.", replica="workerpool1-0")
    assert repair_of(on_gpu, RUN, record) == known
    found["request"]["document"]["scheduling"] = {"retries": 1, "retry_on": ["out_of_memory"]}
    record = recorded(request=found["request"])
    assert "by itself" not in (repair_of(killed, RUN, record) or "")
    assert (repair_of(on_gpu, RUN, record) or "").startswith(f"{known}; no retry followed, because ")
