"""The script that a request or a rule names is packed, and its faults have their places."""

import hashlib
import json
import tarfile
import textwrap
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from tests.client.submission.test_examination import IMAGE, SCRIPTED, TERMS, examined
from tests.narrowing import present
from trainmaster.client.errors import ClientRefused
from trainmaster.client.rules.changing import data_note
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.kinds import FileKind
from trainmaster.client.submission.source import NO_FILE, RequestSource
from trainmaster.orchestrator.core.documents.placing import lines_of_fault

RULE = """# every night
when:
  - schedule: {cron: "0 3 * * *", time_zone: UTC}
request:
  model_name: house
  script: {file: fit.py}
  args: ["--at=${firing.time}"]
  cluster: {chief: {machine: n1-standard-4}}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("print(1)\n")
    return path


def test_a_script_alone_is_a_request_for_one_small_machine(script: Path) -> None:
    found = examined("", NO_FILE, script=script, args=("--x",))
    assert found.object_name == "requests/train.yaml"
    assert found.faults == ()
    archive = (
        f"gs://my-project-data/scripts/{hashlib.sha256(present(found.packed).content).hexdigest()}.tar.gz"
    )
    assert yaml.safe_load(found.content) == {
        "model_name": "train",
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        "args": ["--x"],
        "script": {"file": "train.py", "archive": archive},
    }


def test_a_script_in_the_file_is_packed_with_the_files_folder(script: Path) -> None:
    found = examined(SCRIPTED, str(script.with_name("request.yaml")))
    assert present(found.packed).files == ("train.py",)
    inner = script.parent / "src" / "inner.py"
    inner.parent.mkdir()
    inner.touch()
    found = examined(SCRIPTED.replace("train.py", "src/inner.py"), str(script.with_name("request.yaml")))
    packed = present(found.packed)
    assert (packed.file, packed.files) == ("src/inner.py", ("src/inner.py", "train.py"))
    assert found.faults == ()


def test_a_script_of_a_request_runs_in_the_requests_image(script: Path) -> None:
    assert yaml.safe_load(examined(script=script).content)["image"] == IMAGE


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
    first, *lines = lines_of_fault(fault, file, "error")
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
def test_the_problem_of_a_script_is_printed_in_printable_lines(
    source: bytes, said: str, script: Path
) -> None:
    script.write_bytes(source)
    (fault,) = examined("", NO_FILE, script=script).faults
    lines = lines_of_fault(fault, NO_FILE)
    assert said in lines[0]
    assert all(line.isprintable() for line in lines)


def test_a_script_that_only_warns_is_sent(script: Path) -> None:
    script.write_text("x = '\\d'\nassert (x, 'always')\n")
    assert examined("", NO_FILE, script=script).faults == ()


@pytest.mark.parametrize(
    ("name", "of_file", "of_option"),
    [
        ("fitt.py", "Did you mean 'fit.py'?", "Did you mean 'fit.py'?"),
        ("other.py", "a path from script.root, or else from the request's folder.", "--script train.py"),
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
    with pytest.raises(ClientRefused, match=r"There is no file|is a folder") as refused:
        examined("", NO_FILE, script=tmp_path / name)
    assert of_option.replace("/", f"{tmp_path.name}/") in str(refused.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "fit.py").write_text("print(1)\n")
    return tmp_path / "rule.yaml"


def examined_rule(file: Path, text: str) -> Examination:
    source = RequestSource(file=str(file), content=text.encode(), folder=file.parent)
    return examination_of(source, TERMS, expected=FileKind.RULE)


@pytest.mark.parametrize("name", ["rule.yaml", "rule.json"])
def test_the_archive_is_filled_in_and_all_else_stays(name: str, file: Path) -> None:
    text = RULE if name.endswith("yaml") else json.dumps(yaml.safe_load(RULE))
    ready = examined_rule(file.with_name(name), text)
    packed = present(ready.packed)
    with tarfile.open(fileobj=BytesIO(packed.content)) as tar:
        assert "fit.py" in tar.getnames()
    wanted = yaml.safe_load(RULE)
    archive = f"gs://my-project-data/scripts/{packed.sha256}.tar.gz"
    wanted["request"]["script"] = {"file": "fit.py", "archive": archive}
    assert yaml.safe_load(ready.content) == wanted
    assert ready.refusal == ""


@pytest.mark.parametrize(
    "text",
    [RULE.replace("file: fit.py", "file: fit.py, archive: gs://b/a.tar.gz"), "[]", "request: {", "a: 1"],
)
def test_a_rule_without_a_script_of_this_machine_stays_as_it_is(text: str, file: Path) -> None:
    ready = examined_rule(file, text)
    assert (ready.content, ready.packed) == (text.encode(), None)


def test_the_faults_of_a_changed_rule_are_at_their_places_in_the_file(file: Path) -> None:
    (fault,) = examined_rule(file, RULE.replace("n1-standard-4", "huge-9000")).faults
    place = present(fault.place)
    assert (place.line, place.text) == (8, "  cluster: {chief: {machine: huge-9000}}")


def test_a_rule_on_new_data_whose_runs_do_not_learn_what_is_new_gets_a_note(file: Path) -> None:
    watching = RULE.replace("firing.time", "data.newest_uri").replace(
        'schedule: {cron: "0 3 * * *", time_zone: UTC}', 'new_data: {objects: "gs://data-1/**"}'
    )
    assert data_note(examined_rule(file, watching)) is None
    assert data_note(examined_rule(file, RULE)) is None
    note = data_note(examined_rule(file, watching.replace("data.newest_uri", "firing.time")))
    assert "its runs do not learn what is new" in present(note)


EVALUATED = "model_name: m\nimage: IMAGE\ncluster: {chief: {machine: n1-standard-4}}\nchampion: CHAMPION\n".replace(
    "CHAMPION",
    "{metric: a, goal: maximize, evaluate: {script: {file: score.py}, data: gs://my-project-data/holdout.csv}}",
).replace("IMAGE", IMAGE)


@pytest.mark.parametrize("above", [(), ("request",)])
def test_a_script_that_evaluates_is_packed_like_the_run_s_own(script: Path, above: tuple[str, ...]) -> None:
    (script.parent / "score.py").write_text("print(2)\n")
    text = EVALUATED
    if above:
        text = f'when: [{{schedule: {{cron: "0 3 * * *", time_zone: UTC}}}}]\nrequest:\n{textwrap.indent(text, "  ")}'
        source = RequestSource(file="rule.yaml", content=text.encode(), folder=script.parent)
        found = examination_of(source, TERMS, expected=FileKind.RULE)
    else:
        found = examined(text, str(script.with_name("request.yaml")))
    assert (found.faults, found.packed, found.refusal) == ((), None, "")
    (packed,) = found.archives
    assert packed.files == ("score.py", "train.py")
    sent = yaml.safe_load(found.content)
    for key in (*above, "champion", "evaluate"):
        sent = sent[key]
    archive = f"gs://my-project-data/scripts/{packed.sha256}.tar.gz"
    assert sent["script"] == {"file": "score.py", "archive": archive}


def test_one_folder_with_both_scripts_is_sent_once_and_a_missing_one_is_a_fault(script: Path) -> None:
    both = EVALUATED.replace(f"image: {IMAGE}", "script: {file: train.py}")
    (missing,) = examined(both, str(script.with_name("request.yaml"))).faults
    assert missing.path == "$.champion.evaluate.script.file"
    (script.parent / "score.py").write_text("print(2)\n")
    found = examined(both, str(script.with_name("request.yaml")))
    assert (found.faults, len(found.archives)) == ((), 1)
    assert present(found.packed).sha256 == present(found.evaluator).sha256


def test_a_script_that_evaluates_on_another_machine_cannot_be_sent() -> None:
    found = examination_of(
        RequestSource(file=NO_FILE + "x.yaml", content=EVALUATED.encode(), folder=None), TERMS
    )
    assert "names a script of your machine" in found.refusal


def test_the_bound_counts_the_evaluation(script: Path) -> None:
    (script.parent / "score.py").write_text("print(2)\n")
    alone = examined(EVALUATED.partition("champion:")[0], str(script.with_name("request.yaml"))).bound
    both = examined(EVALUATED, str(script.with_name("request.yaml"))).bound
    assert present(present(both).at_most) > present(present(alone).at_most)
