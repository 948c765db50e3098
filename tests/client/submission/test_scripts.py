"""The script of a rule's request is packed when the rule is applied, and its faults have their places in the file."""

import json
import re
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from tests.client.submission.test_prepare import CONTEXT, RULES
from trainmaster.client.checking import check
from trainmaster.client.request_files import buckets_of
from trainmaster.client.submission.scripts import data_note, with_script

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


@pytest.mark.parametrize("name", ["rule.yaml", "rule.json"])
def test_the_archive_is_filled_in_and_all_else_stays(name: str, file: Path) -> None:
    text = RULE if name.endswith("yaml") else json.dumps(yaml.safe_load(RULE))
    ready = with_script(file.with_name(name), text.encode(), CONTEXT, None)
    assert ready.packed is not None
    with tarfile.open(fileobj=BytesIO(ready.packed.content)) as tar:
        assert "fit.py" in tar.getnames()
    wanted = yaml.safe_load(RULE)
    archive = f"gs://my-project-data/scripts/{ready.packed.sha256}.tar.gz"
    wanted["request"]["script"] = {"file": "fit.py", "archive": archive}
    assert yaml.safe_load(ready.content) == wanted
    checked = check(name, ready.content, RULES, buckets_of(CONTEXT))
    assert checked.faults == ()


@pytest.mark.parametrize(
    "text",
    [RULE.replace("file: fit.py", "file: fit.py, archive: gs://b/a.tar.gz"), "[]", "request: {", "a: 1"],
)
def test_a_rule_without_a_script_of_this_machine_stays_as_it_is(text: str, file: Path) -> None:
    ready = with_script(file, text.encode(), CONTEXT, None)
    assert (ready.content, ready.packed) == (text.encode(), None)


def test_a_script_that_is_missing_or_no_python_is_refused(file: Path) -> None:
    missing = RULE.replace("fit.py", "fitt.py").encode()
    ready = with_script(file, missing, CONTEXT, None)
    (fault,) = ready.unpacked
    assert fault.path == "$.request.script.file"
    assert re.match("There is no file .*Did you mean 'fit.py'", fault.problem)
    assert ready.packed is None
    assert check("rule.yaml", ready.content, RULES, buckets_of(CONTEXT)).faults == ()
    file.with_name("fit.py").write_text("print(\n")
    not_python = with_script(file, RULE.encode(), CONTEXT, None).not_python
    assert not_python is not None
    assert re.search(r"fit.py:1:6: error: '\(' was never closed", not_python)


def test_a_check_takes_the_script_as_to_come_and_places_the_other_faults_in_the_file() -> None:
    checked = check("rule.yaml", RULE.encode(), RULES, buckets_of(CONTEXT))
    assert checked.faults == ()
    assert "the script, which `trainmaster rules apply` uploads" in checked.not_checked[0]
    faulty = RULE.replace("n1-standard-4", "huge-9000").encode()
    (fault,) = check("rule.yaml", faulty, RULES, buckets_of(CONTEXT)).faults
    assert fault.place is not None
    assert (fault.place.line, fault.place.text) == (8, "  cluster: {chief: {machine: huge-9000}}")


def test_a_rule_on_new_data_whose_runs_do_not_learn_what_is_new_gets_a_note(file: Path) -> None:
    watching = RULE.replace("firing.time", "data.newest_uri").replace(
        'schedule: {cron: "0 3 * * *", time_zone: UTC}', 'new_data: {objects: "gs://b/**"}'
    )
    assert data_note(file, watching.encode()) is None
    assert data_note(file, RULE.encode()) is None
    note = data_note(file, watching.replace("data.newest_uri", "firing.time").encode())
    assert note is not None
    assert "its runs do not learn what is new" in note
