"""Changes that the options of `submit` make in a request, the faults of their values, and where two requests differ."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.client.submission.test_examination import GCLOUD, IMAGE, REQUEST, examined
from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.settings import parse_settings
from trainmaster.client.submission.source import NO_FILE
from trainmaster.orchestrator.core.documents.placing import lines_of_fault


def sent(**edits: Any) -> Any:
    """The document that is sent."""
    found = examined(**edits)
    assert found.faults == ()
    return yaml.safe_load(found.content)


def test_options_replace_values_of_the_request() -> None:
    document = sent(name="n", args=("--a", "1"), machine="n1-standard-8", settings=["scheduling.spot=true"])
    assert document == {
        "model_name": "n",
        "image": IMAGE,
        "cluster": {"chief": {"machine": "n1-standard-8"}},
        "args": ["--a", "1"],
        "scheduling": {"spot": True},
    }


def test_a_request_that_options_change_says_from_which_content_of_the_file() -> None:
    first, _, rest = examined(args=("--a",)).content.decode().partition("\n")
    assert first.startswith("# ")
    assert hashlib.sha256(REQUEST.encode()).hexdigest() in first
    assert not rest.startswith("#")


def test_a_json_file_stays_json_when_options_change_it() -> None:
    found = examined(json.dumps(yaml.safe_load(REQUEST)), "request.json", name="n")
    assert found.faults == ()
    assert json.loads(found.content)["model_name"] == "n"


def test_gpus_choose_the_machine_of_every_role_and_workers_get_the_chiefs() -> None:
    workers = {"chief": {"gpu": "L4:1"}, "workers": {"gpu": "L4:1", "count": 2}}
    assert sent(gpu="L4:1", workers=2)["cluster"] == workers
    both = REQUEST + "  workers: {count: 3, machine: n1-standard-8}\n"
    assert yaml.safe_load(examined(both, workers=0).content)["cluster"] == {
        "chief": {"machine": "n1-standard-4"}
    }
    assert yaml.safe_load(examined(both, gpu="T4").content)["cluster"] == {
        "chief": {"gpu": "T4"}, "workers": {"gpu": "T4", "count": 3}
    }  # fmt: skip


def test_faults_of_an_edited_request_are_at_their_places_unless_an_option_set_the_value() -> None:
    text = REQUEST + "args: 3\n"
    faults = examined(text, machine="n1-standard-5", settings=["priority=101"]).faults
    places = {fault.path: fault.place and fault.place.line for fault in faults}
    assert places == {"$.args": 6, "$.cluster.chief.machine": None, "$.priority": None}


@pytest.mark.parametrize("file", [NO_FILE, "request.yaml"])
def test_a_fault_of_an_options_value_names_the_option_once(file: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    text = "" if file == NO_FILE else REQUEST
    edits: dict[str, Any] = {"gpu": "L4:3", "workers": 2, "settings": ["priority=101"]}
    found = examined(text, file, **edits, **({"script": script} if file == NO_FILE else {}))
    assert [(fault.source, fault.path, fault.problem, fault.found) for fault in found.faults] == [
        ("--gpu", "$.cluster.chief.gpu", "no machine type has 3 NVIDIA_L4", "'L4:3'"),
        ("--set priority=101", "$.priority", "too large", "101"),
    ]
    assert found.faulty == (file or "command line")


def test_a_fault_of_a_setting_names_it_in_place_of_the_file() -> None:
    (fault,) = examined(settings=["foo.bar=1"]).faults
    assert lines_of_fault(fault, "request.yaml")[0] == "--set foo.bar=1: $.foo: unknown key 'foo'"


def test_a_fault_of_a_matrix_names_that_option() -> None:
    (fault,) = examined(settings=["args=[--lr=1]"], matrix=["lr=0.1,0.2"]).faults
    assert (fault.path, fault.source) == ("$.matrix.lr", "--matrix lr=0.1,0.2")
    with pytest.raises(ClientRefused, match="--matrix 'lr': it is not KEY=VALUE"):
        parse_settings([], ["lr"])


@pytest.mark.parametrize(
    ("setting", "repair"),
    [
        ("tuning.parameters.a.values[0]=1.10", """write --set 'tuning.parameters.a.values[0]="1.10"'"""),
        (
            "tuning.parameters.a.values=[1.10, x]",
            'quote it: "1.10", and put single quotes around tuning.parameters.a.values=…',
        ),
    ],
)
def test_the_repair_of_a_setting_survives_a_shell(setting: str, repair: str) -> None:
    tuning = "{metrics: [{id: a, goal: maximize}], max_trials: 2, parameters: {a: {type: categorical, values: [x, y]}}}"
    (fault,) = examined(f"{REQUEST}tuning: {tuning}\n", settings=[setting]).faults
    assert (fault.found, fault.repair) == ("1.10", f"{repair}; numbers are of type: discrete")


def test_a_setting_adds_to_a_list_whose_faults_keep_their_places() -> None:
    faults = examined(REQUEST + "args: [1.10]\n", settings=["args[1]=2", "labels={a: 1.10}"]).faults
    assert [(fault.source, fault.path, fault.found, fault.place is None) for fault in faults] == [
        ("", "$.args[0]", "1.10", False),
        ("--set 'labels={a: 1.10}'", "$.labels.a", "1.10", True),
    ]


def test_a_setting_in_place_of_a_number_is_not_found_as_that_number() -> None:
    (fault,) = examined(REQUEST + "priority: 1.10\n", settings=["priority=1.5"]).faults
    assert fault.found == "1.5"


def test_a_fault_of_the_file_names_no_option() -> None:
    text = REQUEST.replace("chief: {machine: n1-standard-4}", "chief: {gpu: L4:3}")
    (fault,) = examined(text, name="n").faults
    assert (fault.problem, fault.place and fault.place.line) == ("no machine type has 3 NVIDIA_L4", 5)


def test_a_file_that_cannot_be_read_is_not_edited() -> None:
    (fault,) = examined("a: [", name="n").faults
    assert fault.place is not None
    assert examined("- a\n", name="n").faults[0].problem == "a request must be a mapping"


def test_options_do_not_change_a_request_of_another_form() -> None:
    with pytest.raises(ClientRefused, match=r"request\.yaml has the form 'custom-jobs'"):
        examined(GCLOUD, name="n")
