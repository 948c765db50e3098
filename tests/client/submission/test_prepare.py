"""What is sent for a file and the options of `submit`, and every fault that stops it."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainmaster.client.context import context_in_cloud
from trainmaster.client.errors import Refused
from trainmaster.client.request_files import SHIPPED_POLICY, read_policy, rules_for, shipped_prices
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.prepare import NO_FILE, Prepared, check_names, prepare
from trainmaster.client.submission.settings import parse_settings
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.placing import rendered

CONTEXT = context_in_cloud("my-project", "us-central1")
RULES = rules_for(CONTEXT, read_policy(SHIPPED_POLICY, CONTEXT))
IMAGE = "us-central1-docker.pkg.dev/my-project/trainmaster/own:1"
REQUEST = f"# mine\nmodel_name: m\nimage: {IMAGE}\ncluster:\n  chief: {{machine: n1-standard-4}}\n"
GCLOUD = "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n  containerSpec: {imageUri: IMAGE}\n".replace(
    "IMAGE", IMAGE
)


def prepared(text: str = REQUEST, file: str = "request.yaml", **edits: Any) -> Prepared:
    edits["settings"] = parse_settings(edits.get("settings", ()))
    return prepare(file, text.encode(), Edits(**edits), context=CONTEXT, rules=RULES, prices=shipped_prices())


def sent(**edits: Any) -> Any:
    """The document that is sent."""
    found = prepared(**edits)
    assert found.faults == ()
    return yaml.safe_load(found.content)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("print(1)\n")
    return path


def test_a_file_without_edits_is_sent_as_it_is() -> None:
    found = prepared()
    assert (found.object_name, found.content) == ("requests/request.yaml", REQUEST.encode())
    assert found.packed is None


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
    first, _, rest = prepared(args=("--a",)).content.decode().partition("\n")
    assert first.startswith("# ")
    assert hashlib.sha256(REQUEST.encode()).hexdigest() in first
    assert not rest.startswith("#")


def test_a_json_file_stays_json_when_options_change_it() -> None:
    found = prepared(json.dumps(yaml.safe_load(REQUEST)), "request.json", name="n")
    assert found.faults == ()
    assert json.loads(found.content)["model_name"] == "n"


def test_gpus_choose_the_machine_of_every_role_and_workers_get_the_chiefs() -> None:
    workers = {"chief": {"gpu": "L4:1"}, "workers": {"gpu": "L4:1", "count": 2}}
    assert sent(gpu="L4:1", workers=2)["cluster"] == workers
    both = REQUEST + "  workers: {count: 3, machine: n1-standard-8}\n"
    assert yaml.safe_load(prepared(both, workers=0).content)["cluster"] == {
        "chief": {"machine": "n1-standard-4"}
    }
    assert yaml.safe_load(prepared(both, gpu="T4").content)["cluster"] == {
        "chief": {"gpu": "T4"}, "workers": {"gpu": "T4", "count": 3}
    }  # fmt: skip


def test_a_script_alone_is_a_request_for_one_small_machine(script: Path) -> None:
    found = prepared("", NO_FILE, script=script, args=("--x",))
    assert found.packed is not None
    assert found.object_name == "requests/train.yaml"
    assert found.faults == ()
    archive = f"gs://my-project-data/scripts/{hashlib.sha256(found.packed.content).hexdigest()}.tar.gz"
    assert yaml.safe_load(found.content) == {
        "model_name": "train",
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        "args": ["--x"],
        "script": {"file": "train.py", "archive": archive},
    }


def test_a_script_in_the_file_is_packed_with_the_files_folder(script: Path) -> None:
    text = "model_name: m\nscript: {file: train.py}\ncluster: {chief: {machine: n1-standard-4}}\n"
    found = prepared(text, str(script.with_name("request.yaml")))
    assert found.packed is not None
    assert found.packed.files == ("train.py",)
    inner = script.parent / "src" / "inner.py"
    inner.parent.mkdir()
    inner.touch()
    found = prepared(text.replace("train.py", "src/inner.py"), str(script.with_name("request.yaml")))
    assert found.packed is not None
    assert (found.packed.file, found.packed.files) == ("src/inner.py", ("src/inner.py", "train.py"))
    assert found.faults == ()


def test_a_script_of_a_request_runs_in_the_requests_image(script: Path) -> None:
    assert sent(script=script)["image"] == IMAGE


def test_faults_of_an_edited_request_are_at_their_places_unless_an_option_set_the_value() -> None:
    text = REQUEST + "args: 3\n"
    faults = prepared(text, machine="n1-standard-5", settings=["priority=101"]).faults
    places = {fault.path: fault.place and fault.place.line for fault in faults}
    assert places == {"$.args": 6, "$.cluster.chief.machine": None, "$.priority": None}


@pytest.mark.parametrize("file", [NO_FILE, "request.yaml"])
def test_a_fault_of_an_options_value_names_the_option_once(file: str, script: Path) -> None:
    text = "" if file == NO_FILE else REQUEST
    edits: dict[str, Any] = {"gpu": "L4:3", "workers": 2, "settings": ["priority=101"]}
    found = prepared(text, file, **edits, **({"script": script} if file == NO_FILE else {}))
    assert [(fault.source, fault.path, fault.problem, fault.found) for fault in found.faults] == [
        ("--gpu", "$.cluster.chief.gpu", "no machine type has 3 NVIDIA_L4", "'L4:3'"),
        ("--set priority=101", "$.priority", "too large", "101"),
    ]
    assert found.faulty == (file or "command line")


def test_a_fault_of_a_setting_names_it_in_place_of_the_file() -> None:
    (fault,) = prepared(settings=["foo.bar=1"]).faults
    assert rendered(fault, "request.yaml")[0] == "--set foo.bar=1: $.foo: unknown key 'foo'"


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
    (fault,) = prepared(f"{REQUEST}tuning: {tuning}\n", settings=[setting]).faults
    assert (fault.found, fault.repair) == ("1.10", f"{repair}; numbers are of type: discrete")


def test_a_setting_adds_to_a_list_whose_faults_keep_their_places() -> None:
    faults = prepared(REQUEST + "args: [1.10]\n", settings=["args[1]=2", "labels={a: 1.10}"]).faults
    assert [(fault.source, fault.path, fault.found, fault.place is None) for fault in faults] == [
        ("", "$.args[0]", "1.10", False),
        ("--set 'labels={a: 1.10}'", "$.labels.a", "1.10", True),
    ]


def test_a_setting_in_place_of_a_number_is_not_found_as_that_number() -> None:
    (fault,) = prepared(REQUEST + "priority: 1.10\n", settings=["priority=1.5"]).faults
    assert fault.found == "1.5"


def test_a_fault_of_the_file_names_no_option() -> None:
    text = REQUEST.replace("chief: {machine: n1-standard-4}", "chief: {gpu: L4:3}")
    (fault,) = prepared(text, name="n").faults
    assert (fault.problem, fault.place and fault.place.line) == ("no machine type has 3 NVIDIA_L4", 5)


def test_a_file_that_cannot_be_read_is_not_edited() -> None:
    (fault,) = prepared("a: [", name="n").faults
    assert fault.place is not None
    assert prepared("- a\n", name="n").faults[0].problem == "a request must be a mapping"
    assert "too large" in prepared("a" * 300_000).faults[0].problem


@pytest.mark.parametrize(
    ("text", "file", "edits", "said"),
    [
        (GCLOUD, "job.yaml", {"name": "n"}, "job.yaml has the form 'custom-jobs'"),
        ("cancel: {run: a}\n", "order.yaml", {}, "order.yaml is an order. Give it: trainmaster cancel a"),
        ("fire: {rule: drift}\n", "o.yaml", {}, "Give it: trainmaster rules fire drift"),
        ("rollback: {model_name: m}\n", "o.yaml", {}, "Give it: trainmaster champions rollback m"),
        (
            "rollback: {model_name: m, to_run: r}\n",
            "o.yaml",
            {},
            "Give it: trainmaster champions rollback m --to-run r",
        ),
        ("fire: {}\n", "o.yaml", {}, "Give it: trainmaster rules fire, champions rollback or cancel"),
        ("when: []\n", "rule.yaml", {}, "trainmaster rules apply rule.yaml"),
        (REQUEST, "request.txt", {}, "must end in .yaml, .yml, .json"),
        (REQUEST, ".request.yaml", {}, "the service ignores hidden and temporary files"),
        (REQUEST, "a\nb.yaml", {}, "Rename it"),
        (REQUEST, "request.yaml", {"settings": ["model_name.x=1"]}, "there is no 'x' in 'm'"),
        (REQUEST, "request.yaml", {"script": Path("none.py")}, "There is no file 'none.py'"),
    ],
)
def test_what_cannot_be_sent_is_refused(text: str, file: str, edits: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        prepared(text, file, **edits)
    assert said in str(refused.value)


def test_a_request_in_another_form_is_sent_as_it_is() -> None:
    assert prepared(GCLOUD, "job.yaml").content == GCLOUD.encode()


def test_a_message_gets_no_name_from_its_file() -> None:
    found = prepare(
        "job.yaml",
        GCLOUD.encode(),
        Edits(),
        context=CONTEXT,
        rules=RULES,
        prices=shipped_prices(),
        is_message=True,
    )
    assert found.faults


def test_two_files_of_one_name_are_refused() -> None:
    with pytest.raises(Refused, match=r"a/request.yaml, b/request.yaml have the same name"):
        check_names(
            [prepared(file="a/request.yaml"), prepared(file="b/request.yaml"), prepared(file="c.yaml")]
        )


def test_a_script_that_is_missing_hides_no_other_fault(tmp_path: Path) -> None:
    text = "model_name: m\nscript: {file: gone.py}\ncluster:\n  chief: {machine: huge-9000}\n"
    missing, machine = prepared(text, str(tmp_path / "request.yaml")).faults
    assert (missing.path, missing.place and missing.place.line) == ("$.script.file", 2)
    assert "There is no file" in missing.problem
    assert machine.path == "$.cluster.chief.machine"


def test_a_file_that_was_read_in_part_is_not_said_to_have_that_size() -> None:
    (fault,) = prepared("x" * (256 * 1024 + 1)).faults
    assert fault.found == "more than 262144 bytes"


BROKEN = "import sys\nprint('a'\n"


@pytest.mark.parametrize("file", [NO_FILE, "request.yaml"])
def test_a_script_that_is_no_python_is_refused_with_its_line_and_a_mark(
    file: str, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(script.parent)
    script.write_text(BROKEN)
    if file == NO_FILE:
        found = prepared("", file, script=script)
    else:
        request = "model_name: m\nscript: {file: train.py}\ncluster: {chief: {machine: n1-standard-4}}\n"
        found = prepared(request, file)
    assert (found.request, found.faults) == (None, ())
    assert found.not_python is not None
    first, *lines = found.not_python.splitlines()
    assert first.startswith("train.py:2:6: error: '(' was never closed (Python 3.")
    assert lines == ["  2 | print('a'", "    |      ^"]


def test_in_an_image_of_its_own_a_script_may_be_of_a_newer_python(script: Path) -> None:
    script.write_text(BROKEN)
    found = prepared(script=script)
    assert found.not_python is not None
    assert found.request is not None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"x = '\xff'\n", "error: "),
        (b"x = 1\0\n", "null bytes"),
        (b"x = " + b"(" * 5000, "error: "),
        (b"\tx = 1\n", "train.py:1:"),
        (b"if x:\n\x1b[31m\n", "error: "),
    ],
)
def test_whatever_is_in_a_script_the_problem_is_said_in_printable_lines(
    source: bytes, said: str, script: Path
) -> None:
    script.write_bytes(source)
    problem = prepared("", NO_FILE, script=script).not_python
    assert problem is not None
    assert said in problem
    assert all(line.isprintable() for line in problem.splitlines())


def test_a_script_that_only_warns_is_sent(script: Path) -> None:
    script.write_text("x = '\\d'\nassert (x, 'always')\n")
    assert prepared("", NO_FILE, script=script).not_python is None


def test_a_misspelt_script_gets_the_name_of_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "fit.py").touch()
    text = "model_name: m\nscript: {file: FILE}\ncluster: {chief: {machine: n1-standard-4}}\n"
    for name, said in (
        ("fitt.py", "Did you mean 'fit.py'?"),
        ("other.py", "Correct the name, which is a path from the folder of the request file."),
    ):
        (fault,) = prepared(text.replace("FILE", name), str(tmp_path / "request.yaml")).faults
        assert fault.problem == f"There is no file {str(tmp_path / name)!r}. {said}"
    for name, said in (
        ("fitt.py", "Did you mean 'fit.py'?"),
        ("other.py", "--script train.py"),
        ("", "/fit.py'"),
    ):
        with pytest.raises(Refused, match=r"There is no file|is a folder") as refused:
            prepared("", NO_FILE, script=tmp_path / name)
        assert said.replace("/", f"{tmp_path.name}/") in str(refused.value)


def test_the_bounds_name_the_most_that_it_may_cost_and_the_policys_time_limit() -> None:
    limit = "Set another limit with --set scheduling.timeout_s=SECONDS"
    day = prepared().bounds
    assert day.startswith("It may run for 24 h and cost up to ")
    assert day.endswith(f" USD. {limit}")
    hour = prepared(settings=["scheduling.timeout_s=3600"]).bounds
    assert hour.startswith("It may cost up to 0.")
    assert hour.endswith(" USD.")


def test_what_runs_on_this_machine_would_cost_that_in_the_cloud() -> None:
    local = replace(CONTEXT, state=Path("state"))
    made = prepare("r.yaml", REQUEST.encode(), Edits(), context=local, rules=RULES, prices=shipped_prices())
    assert " USD in the cloud." in made.bounds


def test_where_a_price_is_unknown_only_the_time_limit_is_said() -> None:
    prices = Prices(as_of="2026-01-01", currency="USD", rows=())
    made = prepare("r.yaml", REQUEST.encode(), Edits(), context=CONTEXT, rules=RULES, prices=prices)
    assert made.bounds == "It may run for 24 h. Set another limit with --set scheduling.timeout_s=SECONDS"
