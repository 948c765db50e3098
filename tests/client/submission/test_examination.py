"""What is sent for a source and the options of `submit`, and every fault and doubt about it."""

import hashlib
import json
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainmaster.client.context import context_in_cloud
from trainmaster.client.errors import Refused
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.send import check_names
from trainmaster.client.submission.settings import parse_settings
from trainmaster.client.submission.source import NO_FILE, Source, pasted_source
from trainmaster.client.submission.terms import terms_with_policy
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.placing import rendered
from trainmaster.resources import ROOT

TERMS = terms_with_policy(context_in_cloud("my-project", "us-central1"))
IMAGE = "us-central1-docker.pkg.dev/my-project/trainmaster/own:1"
REQUEST = f"# mine\nmodel_name: m\nimage: {IMAGE}\ncluster:\n  chief: {{machine: n1-standard-4}}\n"
SCRIPTED = "model_name: m\nscript: {file: train.py}\ncluster: {chief: {machine: n1-standard-4}}\n"
GCLOUD = "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n  containerSpec: {imageUri: IMAGE}\n".replace(
    "IMAGE", IMAGE
)


def examined(text: str = REQUEST, file: str = "request.yaml", **edits: Any) -> Examination:
    edits["settings"] = parse_settings(edits.get("settings", ()))
    source = Source(file=file, content=text.encode(), folder=Path(file).parent)
    return examination_of(source, TERMS, Edits(**edits))


def sent(**edits: Any) -> Any:
    """The document that is sent."""
    found = examined(**edits)
    assert found.faults == ()
    return yaml.safe_load(found.content)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("print(1)\n")
    return path


def test_a_file_without_edits_is_sent_as_it_is() -> None:
    found = examined()
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


def test_a_script_alone_is_a_request_for_one_small_machine(script: Path) -> None:
    found = examined("", NO_FILE, script=script, args=("--x",))
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
    found = examined(SCRIPTED, str(script.with_name("request.yaml")))
    assert found.packed is not None
    assert found.packed.files == ("train.py",)
    inner = script.parent / "src" / "inner.py"
    inner.parent.mkdir()
    inner.touch()
    found = examined(SCRIPTED.replace("train.py", "src/inner.py"), str(script.with_name("request.yaml")))
    assert found.packed is not None
    assert (found.packed.file, found.packed.files) == ("src/inner.py", ("src/inner.py", "train.py"))
    assert found.faults == ()


def test_a_script_of_a_request_runs_in_the_requests_image(script: Path) -> None:
    assert sent(script=script)["image"] == IMAGE


def test_faults_of_an_edited_request_are_at_their_places_unless_an_option_set_the_value() -> None:
    text = REQUEST + "args: 3\n"
    faults = examined(text, machine="n1-standard-5", settings=["priority=101"]).faults
    places = {fault.path: fault.place and fault.place.line for fault in faults}
    assert places == {"$.args": 6, "$.cluster.chief.machine": None, "$.priority": None}


@pytest.mark.parametrize("file", [NO_FILE, "request.yaml"])
def test_a_fault_of_an_options_value_names_the_option_once(file: str, script: Path) -> None:
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


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"name": "n"}, "request.yaml has the form 'custom-jobs'"),
        ({"settings": ["model_name.x=1"]}, "there is no 'x' in 'm'"),
    ],
)
def test_what_options_cannot_change_is_refused(edits: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        examined(GCLOUD if "name" in edits else REQUEST, **edits)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "file", "said"),
    [
        ("cancel: {run: a}\n", "order.yaml", "order.yaml is an order. Give it: trainmaster cancel a"),
        ("fire: {rule: drift}\n", "o.yaml", "Give it: trainmaster rules fire drift"),
        ("rollback: {model_name: m}\n", "o.yaml", "Give it: trainmaster champions rollback m"),
        ("rollback: {model_name: m, to_run: r}\n", "o.yaml", "trainmaster champions rollback m --to-run r"),
        ("fire: {}\n", "o.yaml", "Give it: trainmaster rules fire, champions rollback or cancel"),
        ("when: []\n", "my rule.yaml", "trainmaster rules apply 'my rule.yaml'"),
        (REQUEST, "request.txt", "request.txt: $: the file's name must end in .yaml, .yml, .json"),
        (REQUEST, ".request.yaml", "the service ignores hidden and temporary files"),
        (REQUEST, "a\nb.yaml", "rename it"),
        ("model_name: m\n", "m.yaml", "m.yaml:1:1: $.cluster: missing"),
    ],
)
def test_what_cannot_be_submitted_says_why_and_what_takes_it(text: str, file: str, said: str) -> None:
    assert said in examined(text, file).refusal


def test_a_pasted_text_is_examined_without_its_script_which_is_elsewhere() -> None:
    found = examination_of(pasted_source(SCRIPTED.replace("\n", "\r\n"), "C:\\my\\request.yaml"), TERMS)
    assert (found.faults, found.packed, found.object_name) == ((), None, "requests/request.yaml")
    assert found.request is not None
    assert "run: trainmaster submit FILE" in found.refusal
    with pytest.raises(Refused, match="at most 200 characters"):
        pasted_source(REQUEST, "r" * 300)


@pytest.mark.parametrize("kind", ["request", "rule"])
def test_a_script_that_is_on_this_machine_is_named_as_uploaded_later(kind: str, script: Path) -> None:
    text = (
        SCRIPTED
        if kind == "request"
        else f"when: [{{manual: {{}}}}]\nrequest:\n{textwrap.indent(SCRIPTED, '  ')}"
    )
    found = examined(text, str(script.with_name("r.yaml")))
    assert (found.kind, found.faults, found.warnings) == (kind, (), ())
    verb = "submit" if kind == "request" else "rules apply"
    assert f"the script, which `trainmaster {verb}` uploads" in found.not_checked[0]


@pytest.mark.parametrize(
    ("script_file", "problem"),
    [
        ("trian.py", "There is no file"),
        ("../train.py", "not in the expected format"),
        ("broken.py", " cannot compile line 1: '(' was never closed"),
    ],
)
@pytest.mark.parametrize("kind", ["request", "rule"])
def test_a_script_that_could_not_be_sent_is_a_fault_beside_the_others(
    kind: str, script_file: str, problem: str, script: Path
) -> None:
    script.with_name("broken.py").write_text("print(\n")
    text = SCRIPTED.replace("train.py", script_file).replace("n1-standard-4", "n1-standrd-4")
    above = "" if kind == "request" else "request."
    if above:
        text = f"when: [{{manual: {{}}}}]\nrequest:\n{textwrap.indent(text, '  ')}"
    found = examined(text, str(script.with_name("r.yaml")))
    problems = {fault.path: fault.problem for fault in found.faults}
    assert problem in problems.pop(f"$.{above}script.file")
    assert problems == {f"$.{above}cluster.chief.machine": "the policy does not allow it"}


EXAMPLES = sorted((ROOT / "examples").glob("**/*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_have_no_faults(example: Path) -> None:
    """Google retires its containers, so the example that needs one is refused by the shipped policy."""
    retired = "has been unavailable since"
    assert [
        fault for fault in examined(example.read_text(), str(example)).faults if retired not in fault.problem
    ] == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\x00", "the file is not UTF-8 text"),
        (b"", "the document is empty"),
        (b"- 1", "a request must be a mapping"),
        (b"a: 1\n" * 400_000, "the file is too large for a request"),
    ],
)
def test_what_is_no_request_is_one_clear_fault(content: bytes, said: str) -> None:
    found = examination_of(Source(file="file.yaml", content=content), TERMS)
    assert found.kind == "request"
    (fault,) = found.faults
    assert said in fault.problem


def test_an_order_has_the_faults_of_its_schema() -> None:
    (fault,) = examined('{"fire": {"rul": "a"}}', "order.json").faults
    assert (fault.path, fault.place and fault.place.column) == ("$.fire.rul", 11)


def test_a_request_in_another_form_is_sent_as_it_is() -> None:
    assert examined(GCLOUD, "job.yaml").content == GCLOUD.encode()


def test_a_message_gets_no_name_from_its_file() -> None:
    source = Source(file="job.yaml", content=GCLOUD.encode())
    assert examination_of(source, TERMS).faults == ()
    assert examination_of(source, TERMS, is_message=True).faults


def test_two_files_of_one_name_are_refused() -> None:
    with pytest.raises(Refused, match=r"a/request.yaml, b/request.yaml have the same name"):
        check_names(
            [examined(file="a/request.yaml"), examined(file="b/request.yaml"), examined(file="c.yaml")]
        )


def test_a_file_that_was_read_in_part_is_not_said_to_have_that_size() -> None:
    (fault,) = examined("x" * (256 * 1024 + 1)).faults
    assert fault.found == "more than 262144 bytes"


BROKEN = "import sys\nprint('a'\n"


@pytest.mark.parametrize("file", [NO_FILE, "request.yaml"])
def test_a_script_that_is_no_python_is_refused_with_its_line_and_a_mark(
    file: str, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(script.parent)
    script.write_text(BROKEN)
    found = examined("", file, script=script) if file == NO_FILE else examined(SCRIPTED, file)
    assert found.request is None
    (fault,) = found.faults
    first, *lines = rendered(fault, file, "error")
    assert first.startswith("train.py:2:6: error: $.script.file: Python 3.")
    assert first.endswith(" cannot compile line 2: '(' was never closed")
    assert lines == ["  2 | print('a'", "    |      ^"]
    assert "line" not in fault.document, "a report's lines are those of the request"


def test_in_an_image_of_its_own_a_script_may_be_of_a_newer_python(script: Path) -> None:
    script.write_text(BROKEN)
    found = examined(script=script)
    assert found.request is not None
    assert "cannot compile line 2" in found.warnings[-1].problem


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"x = '\xff'\n", "train.py"),
        (b"x = 1\0\n", "null bytes"),
        (b"x = " + b"(" * 5000, "cannot compile"),
        (b"\tx = 1\n", "train.py:1:"),
        (b"if x:\n\x1b[31m\n", "cannot compile"),
    ],
)
def test_whatever_is_in_a_script_the_problem_is_said_in_printable_lines(
    source: bytes, said: str, script: Path
) -> None:
    script.write_bytes(source)
    (fault,) = examined("", NO_FILE, script=script).faults
    lines = rendered(fault, NO_FILE)
    assert said in lines[0]
    assert all(line.isprintable() for line in lines)


def test_a_script_that_only_warns_is_sent(script: Path) -> None:
    script.write_text("x = '\\d'\nassert (x, 'always')\n")
    assert examined("", NO_FILE, script=script).faults == ()


@pytest.mark.parametrize(
    ("name", "of_file", "of_option"),
    [
        ("fitt.py", "Did you mean 'fit.py'?", "Did you mean 'fit.py'?"),
        ("other.py", "a path from the folder of the request file.", "--script train.py"),
        ("", "", "/fit.py'"),
    ],
)
def test_a_misspelt_script_gets_the_name_of_the_file_beside_it(
    name: str, of_file: str, of_option: str, tmp_path: Path
) -> None:
    (tmp_path / "fit.py").touch()
    if of_file:
        (fault,) = examined(SCRIPTED.replace("train.py", name), str(tmp_path / "request.yaml")).faults
        assert (fault.source, fault.place and fault.place.line) == ("", 2)
        assert fault.problem.startswith(f"There is no file {str(tmp_path / name)!r}. ")
        assert of_file in fault.problem
    with pytest.raises(Refused, match=r"There is no file|is a folder") as refused:
        examined("", NO_FILE, script=tmp_path / name)
    assert of_option.replace("/", f"{tmp_path.name}/") in str(refused.value)


def test_the_bounds_name_the_most_that_it_may_cost_and_the_policys_time_limit() -> None:
    limit = "Set another limit with --set scheduling.timeout_s=SECONDS"
    day = examined().bounds
    assert day.startswith("It may run for 24 h and cost up to ")
    assert day.endswith(f" USD. {limit}")
    hour = examined(settings=["scheduling.timeout_s=3600"]).bounds
    assert hour.startswith("It may cost up to 0.")
    assert hour.endswith(" USD.")


def test_what_runs_on_this_machine_would_cost_that_in_the_cloud() -> None:
    local = replace(TERMS, context=replace(TERMS.context, state=Path("state")))
    source = Source(file="r.yaml", content=REQUEST.encode())
    assert " USD in the cloud." in examination_of(source, local).bounds
    unknown = replace(TERMS, prices=Prices(as_of="2026-01-01", currency="USD", rows=()))
    only_time = "It may run for 24 h. Set another limit with --set scheduling.timeout_s=SECONDS"
    assert examination_of(source, unknown).bounds == only_time
