"""A misspelt key is one fault, which names the key that was meant; every other fault stays."""

import pytest

from tests.core.parsed import faults_of, sound_request
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.faults import KEYS_SHOWN

IMAGE = "us-central1-docker.pkg.dev/my-project/trainmaster/trainer:1"
MACHINE = {"machine": "n1-standard-4"}


def faults(document: object) -> list[str]:
    return [str(fault) for fault in faults_of(document, name="small").values()]


def own(**changes: object) -> dict[str, object]:
    return {"model_name": "small", "image": IMAGE, "cluster": {"chief": MACHINE}, **changes}


def vertex(container: object, machine: object) -> dict[str, object]:
    pool = {"machineSpec": machine, "replicaCount": 1, "containerSpec": container}
    return {"displayName": "small", "workerPoolSpecs": [pool]}


NO_PLACE = "this key is not allowed in a request; found"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            {"model_name": "small", "imge": IMAGE, "cluster": {"chief": MACHINE}},
            "$.imge: unknown key 'imge'; did you mean 'image'?; allowed: args, ",
        ),
        (
            {"model_name": "small", "image": IMAGE, "clutser": {"chief": MACHINE}},
            "$.clutser: unknown key 'clutser'; did you mean 'cluster'?; allowed: args, ",
        ),
        (
            {"model_name": "m", "scripts": "train.py", "cluster": {"chief": MACHINE}},
            "$.scripts: unknown key 'scripts'; did you mean 'script'?; allowed: args, ",
        ),
        (
            own(cluster={"chief": {"machin": "n1-standard-4"}}),
            "$.cluster.chief.machin: unknown key 'machin'; did you mean 'machine'?; allowed: accelerator, ",
        ),
        (
            vertex({"imageUr": IMAGE}, {"machineType": "n1-standard-4"}),
            f"$.workerPoolSpecs[0].containerSpec.imageUr: {NO_PLACE} 'imageUr'; did you mean 'imageUri'?; allowed: ",
        ),
        (
            vertex({"imageUri": IMAGE}, {"machine_typ": "n1-standard-4"}),
            f"$.workerPoolSpecs[0].machineSpec.machine_typ: {NO_PLACE} 'machine_typ'; did you mean 'machine_type'?; ",
        ),
        (
            {"displayName": "small", "workerPoolSpec": vertex({"imageUri": IMAGE}, {})["workerPoolSpecs"]},
            f"$.workerPoolSpec: {NO_PLACE} 'workerPoolSpec'; did you mean 'workerPoolSpecs'?; allowed: ",
        ),
        (own(jobIds="small"), "$.jobIds: unknown key 'jobIds'; allowed: args, "),
        (
            {
                "jobId": "small",
                "trainingInput": {
                    "scaleTier": "CUSTOM",
                    "masterTyp": "n1-standard-4",
                    "masterConfig": {"imageUri": IMAGE},
                },
            },
            f"$.trainingInput.masterTyp: {NO_PLACE} 'masterTyp'; did you mean 'masterType'?; allowed: args, ",
        ),
    ],
)
def test_a_misspelt_key_is_one_fault_that_suggests_the_right_key(document: object, words: str) -> None:
    (fault,) = faults(document)
    assert fault.startswith(words)
    assert fault.rpartition("allowed: ")[2].count(",") <= KEYS_SHOWN


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("machine", "cluster.chief.machine"),
        ("machine_type", "cluster.chief.machine"),
        ("gpu", "cluster.chief.gpu"),
        ("accelerator", "cluster.chief.accelerator"),
        ("name", "model_name"),
        ("timeout", "scheduling.timeout_s"),
        ("spot", "scheduling.spot"),
        ("retries", "scheduling.retries"),
        ("start_within_s", "scheduling.start_within_s"),
    ],
)
def test_a_key_that_belongs_elsewhere_is_one_fault_with_its_place(key: str, place: str) -> None:
    (fault,) = faults(own(**{key: "L4"}))
    assert fault.startswith(f"$.{key}: unknown key {key!r}; did you mean {place!r}?")
    assert "in all: schemas/training_request.v1.schema.json)" in fault


def test_a_request_without_a_cluster_runs_on_one_small_machine() -> None:
    document = {key: value for key, value in own().items() if key != "cluster"}
    accepted = sound_request(document)
    assert accepted.document["cluster"] == {"chief": {"machine": "n1-standard-4"}}
    (fault,) = faults({**document, "cluster": {}})
    assert fault.startswith("$.cluster.chief: missing")


@pytest.mark.parametrize(
    ("key", "value", "repair"),
    [
        ("script", "train.py", "write script: {file: train.py}"),
        (
            "champion",
            "val_accuracy",
            "write champion: {metric: val_accuracy, goal: maximize}, or goal: minimize",
        ),
        ("cluster.chief", "n1-standard-4", "write chief: {machine: n1-standard-4}"),
        ("cluster.workers", "n1-standard-4", "write workers: {machine: n1-standard-4, count: 1}"),
    ],
)
def test_a_text_for_a_mapping_is_repaired_with_the_mapping(key: str, value: str, repair: str) -> None:
    outer, _, role = key.partition(".")
    (fault,) = faults(own(**{outer: {"chief": MACHINE, role: value} if role else value}))
    assert fault.startswith(f"$.{key}: expected a mapping; found {value!r}")
    assert fault.endswith(repair)


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        (
            {"imge": IMAGE, "cluster": {"chief": {**MACHINE, "disc": 5}}, "args": "x"},
            ["args", "cluster.chief.disc", "imge", "model_name"],
        ),
        (  # `machne` is near a key that is present, whose own fault stays
            own(cluster={"chief": {"machine": 5, "machne": "n1-standard-4"}}),
            ["cluster.chief.machine", "cluster.chief.machne"],
        ),
        (  # no mapping that is empty may have the key: it is not to be indented
            {"model_name": "small", "image": IMAGE, "cluster": None, "size_gb": 5},
            ["cluster", "size_gb"],
        ),
    ],
)
def test_a_misspelt_key_hides_no_other_fault(document: dict[str, object], paths: list[str]) -> None:
    found = faults(document)
    assert [fault.partition(":")[0] for fault in found] == [f"$.{path}" for path in paths]
    assert not any("indent" in fault for fault in found)


FAULTY = {"machine": "n1-standrd-4", "disk": {"size_gb": "x"}, "env": {"TOKEN": "hunter2"}, "args": "--x"}


@pytest.mark.parametrize(
    ("document", "cluster", "role"),
    [
        (own(cluster={"cheif": FAULTY}), "cluster", "cheif"),
        (own(clutser={"cheif": FAULTY}), "clutser", "cheif"),
        (own(cluster={"chief": MACHINE, "worker": {**FAULTY, "count": 2}}), "cluster", "worker"),
    ],
)
def test_below_a_misspelt_role_is_still_checked(document: dict[str, object], cluster: str, role: str) -> None:
    if cluster != "cluster":
        document.pop("cluster")
    here = f"$.{cluster}.{role}"
    assert [fault.partition(":")[0] for fault in faults(document)] == [
        *([f"$.{cluster}"] if cluster != "cluster" else []),
        here,
        f"{here}.args",
        f"{here}.disk.size_gb",
        f"{here}.env.TOKEN",
        f"{here}.machine",
    ]


@pytest.mark.parametrize("gpu", ["L44", "L4:3"])
def test_the_gpu_below_a_misspelt_role_is_checked_at_its_own_place(gpu: str) -> None:
    unknown, machine = faults(own(cluster={"cheif": {"gpu": gpu}}))
    assert "did you mean 'chief'?" in unknown
    assert machine.startswith("$.cluster.cheif.gpu: no machine type has")


def test_a_fault_below_a_misspelt_role_has_its_line() -> None:
    text = f"model_name: m\nimage: {IMAGE}\ncluster:\n  cheif:\n    machine: n1-standrd-4\n"
    found = [present(fault.place) for fault in faults_of(text).values()]
    assert [(place.line, place.column) for place in found] == [(4, 3), (5, 14)]


@pytest.mark.parametrize(
    "cluster",
    [
        {"chief": MACHINE, "cheif": FAULTY},  # there is a chief
        {"chef": FAULTY, "cheif": FAULTY},  # either may be meant
        {"xyzzy": FAULTY},
    ],
)
def test_a_key_that_may_mean_several_things_or_nothing_is_not_guessed(cluster: dict[str, object]) -> None:
    found = [fault.partition(":")[0] for fault in faults(own(cluster=cluster))]
    assert not [path for path in found if path.endswith("size_gb")]
    assert {f"$.cluster.{key}" for key in cluster if key != "chief"} <= set(found)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("cluster:\nchief:\n  machine: n1-standrd-4\n", ["chief", "chief.machine"]),
        ("cluster:\n  chief:\n  machine: n1-standard-4\n", ["cluster.machine"]),
        (
            "cluster: {chief: {machine: n1-standard-4}}\ntuning:\nmax_trials: 2\nmetrics: [{id: a, goal: maximize}]\nparameters: {epochs: {type: double, min: 3, max: 1}}\n",
            ["max_trials", "metrics", "parameters", "parameters.epochs.min"],
        ),
    ],
)
def test_keys_to_indent_below_an_empty_mapping_are_checked_as_if_they_were(
    text: str, places: list[str]
) -> None:
    content = f"model_name: m\nimage: {IMAGE}\n{text}"
    found = faults_of(content)
    assert list(found) == [f"$.{place}" for place in places]
    assert next(iter(found.values())).repair.startswith("indent it: it belongs below ")


def test_a_study_reports_what_a_misspelt_type_or_zero_trials_would_hide() -> None:
    tuning = {
        "metric": "accuracy",
        "goal": "maximize",
        "max_trials": 0,
        "parallel_trials": 5,
        "parameters": {"a": {"type": "int", "min": 8, "max": "1"}, "b": {"type": "int", "min": 8, "max": 1}},
    }
    found = {fault.partition(":")[0]: fault for fault in faults(own(tuning=tuning))}
    assert "did you mean 'metrics[0].goal'?" in found["$.tuning.goal"]
    assert found["$.tuning.parallel_trials"].endswith("raise max_trials")
    assert "min is above max" in found["$.tuning.parameters.b.min"]
