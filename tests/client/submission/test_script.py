"""The script of a rule's request is packed when the rule is applied, and its faults have their places in the file."""

import json
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from tests.client.submission.test_examination import TERMS
from trainmaster.client.rules.changing import data_note
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.kinds import Kind
from trainmaster.client.submission.source import Source

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
def file(tmp_path: Path) -> Path:
    (tmp_path / "fit.py").write_text("print(1)\n")
    return tmp_path / "rule.yaml"


def examined_rule(file: Path, text: str) -> Examination:
    source = Source(file=str(file), content=text.encode(), folder=file.parent)
    return examination_of(source, TERMS, expected=Kind.RULE)


@pytest.mark.parametrize("name", ["rule.yaml", "rule.json"])
def test_the_archive_is_filled_in_and_all_else_stays(name: str, file: Path) -> None:
    text = RULE if name.endswith("yaml") else json.dumps(yaml.safe_load(RULE))
    ready = examined_rule(file.with_name(name), text)
    assert ready.packed is not None
    with tarfile.open(fileobj=BytesIO(ready.packed.content)) as tar:
        assert "fit.py" in tar.getnames()
    wanted = yaml.safe_load(RULE)
    archive = f"gs://my-project-data/scripts/{ready.packed.sha256}.tar.gz"
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


def test_a_rule_whose_script_is_missing_names_a_sample_archive_and_has_no_other_fault(file: Path) -> None:
    ready = examined_rule(file, RULE.replace("fit.py", "fitt.py"))
    (fault,) = ready.faults
    assert (fault.path, fault.place and fault.place.line) == ("$.request.script.file", 6)
    assert (ready.packed, ready.refusal == "") == (None, False)


def test_the_faults_of_a_changed_rule_are_at_their_places_in_the_file(file: Path) -> None:
    (fault,) = examined_rule(file, RULE.replace("n1-standard-4", "huge-9000")).faults
    assert fault.place is not None
    assert (fault.place.line, fault.place.text) == (8, "  cluster: {chief: {machine: huge-9000}}")


def test_a_rule_on_new_data_whose_runs_do_not_learn_what_is_new_gets_a_note(file: Path) -> None:
    watching = RULE.replace("firing.time", "data.newest_uri").replace(
        'schedule: {cron: "0 3 * * *", time_zone: UTC}', 'new_data: {objects: "gs://b/**"}'
    )
    assert data_note(examined_rule(file, watching)) is None
    assert data_note(examined_rule(file, RULE)) is None
    note = data_note(examined_rule(file, watching.replace("data.newest_uri", "firing.time")))
    assert note is not None
    assert "its runs do not learn what is new" in note
