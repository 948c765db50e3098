"""`trainmaster check` shows every fault of every file in its place, and says what it did not check."""

import json
import re
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.command import Done, trainmaster
from tests.core.shipped import ROOT, schema
from tests.ready_stack import stack_on
from trainstack.find import register_stack

REQUEST = """\
model_name: m
image: us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest
cluster:
  chief: {machine: n1-standard-4}
"""
RULE = "when:\n  - manual: {}\nrequest:\n" + textwrap.indent(REQUEST, "  ")


def check(*words: str, cwd: Path, text: str = "", **variables: str) -> Done:
    """Run the command without this process's environment, in a context that only `variables` replace."""
    environment = {"HOME": str(cwd), "TRAINMASTER_CONTEXT": "my-project/us-central1", **variables}
    return trainmaster("check", *words, cwd=cwd, environment=environment, text=text)


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


@pytest.mark.parametrize("verb", ["check", "plan"])
def test_a_link_out_of_the_scripts_folder_is_a_fault_that_include_removes(verb: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "users.txt").symlink_to("/etc/passwd")
    text = "model_name: m\nscript: {file: train.py}\ncluster: {chief: {machine: n1-standard-4}}\n"
    file = written(tmp_path, "request.yaml", text)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = trainmaster(verb, file, cwd=tmp_path, environment=environment)
    assert done.status != 0
    assert "users.txt -> /etc/passwd" in done.out + done.err
    again = trainmaster(verb, file, "--include=users.txt", cwd=tmp_path, environment=environment)
    assert (again.status, "users.txt ->" in again.out + again.err) == (0, False)


def test_the_next_times_of_a_schedule_are_shown_in_its_zone_with_the_offset(tmp_path: Path) -> None:
    schedule = '{schedule: {cron: "0 3 1-7 * MON", time_zone: Asia/Kolkata}}'
    done = check(written(tmp_path, "rule.yaml", RULE.replace("manual: {}", schedule[1:-1])), cwd=tmp_path)
    assert "write '0 3 * * MON#1'" in done.out
    (line,) = [each for each in done.out.splitlines() if "next " in each]
    assert line.startswith("rule.yaml: 0 3 1-7 * MON Asia/Kolkata: next ")
    assert line.count(" 03:00+05:30") == 3


def test_several_conditions_are_shown_as_any_of_them_or_all_of_them(tmp_path: Path) -> None:
    together = "all: [{schedule: {cron: '@daily'}}, {age: {older_than_s: 60}}]"
    any_of = RULE.replace("  - manual: {}\n", f"  - manual: {{}}\n  - {together}\n")
    done = check(written(tmp_path, "rule.yaml", any_of), cwd=tmp_path)
    assert "rule.yaml: fires by any of: manual, all of (schedule @daily Etc/UTC, age 60 s)\n" in done.out
    assert "rule.yaml: @daily Etc/UTC: next " in done.out


def test_a_sound_request_rule_and_order_are_accepted_by_what_they_contain(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "request.yaml", REQUEST),
        written(tmp_path, "rule.yaml", RULE),
        written(tmp_path, "order.json", '{"cancel": {"run": "m-20260101-000000-abc"}}'),
    ]
    done = check(*files, cwd=tmp_path)
    assert (done.status, done.out.splitlines()) == (
        0,
        ["request.yaml: request, no faults", "rule.yaml: rule, no faults", "order.json: order, no faults"],
    )


@pytest.mark.parametrize("where", [(), ("--context", "my-project/us-central1")])
def test_the_team_is_that_of_the_option_before_that_of_the_variable(
    where: tuple[str, ...], tmp_path: Path
) -> None:
    document = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    policy = written(
        tmp_path, "policy.yaml", yaml.safe_dump({**document, "teams": {"vision": {}, "speech": {}}})
    )
    text = REQUEST + "output: {prefix_uri: gs://my-project-models/vision}\n"
    words = (written(tmp_path, "request.yaml", text), "--policy", policy, *where)
    assert check(*words, "--team", "vision", cwd=tmp_path, TRAINMASTER_TEAM="speech").status == 0
    assert check(*words, cwd=tmp_path, TRAINMASTER_TEAM="vision").status == 0
    assert check(*words, cwd=tmp_path, TRAINMASTER_TEAM="speech").status == 1
    assert check(*words, "--team", "x", cwd=tmp_path).status == 2


def test_every_fault_of_every_file_is_shown_in_the_order_of_the_text_with_its_line(tmp_path: Path) -> None:
    one = written(tmp_path, "one.yaml", REQUEST.replace("n1-standard-4", "n1-standrd-4") + "imgae: x\n")
    two = written(tmp_path, "two.yaml", RULE.replace("manual", "manul") + "enabled: 'no'\n")
    done = check(one, two, cwd=tmp_path)
    assert done.status == 1
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith(("one.yaml:", "two.yaml:"))] == [
        "one.yaml:4:20: error: $.cluster.chief.machine: the policy does not allow it",
        "one.yaml:5:1: error: $.imgae: unknown key 'imgae'",
        "one.yaml: request, 2 faults",
        "two.yaml:2:5: error: $.when[0].manul: unknown key 'manul'",
        "two.yaml:8:10: error: $.enabled: expected true or false",
        "two.yaml: rule, 2 faults",
    ]
    at = lines.index("one.yaml:5:1: error: $.imgae: unknown key 'imgae'")
    assert lines[at + 1 : at + 4] == ["  5 | imgae: x", "    | ^^^^^", "  did you mean 'image'?"]


def test_the_same_is_printed_as_json(tmp_path: Path) -> None:
    text = json.dumps({"model_name": "m", "imgae": "x"})
    done = check("-", "-o", "json", cwd=tmp_path, text=text)
    assert done.status == 1
    (result,) = json.loads(done.out)
    assert (result["file"], result["kind"], result["accepted"]) == ("-", "request", False)
    report: dict[str, Any] = schema("rejection_report.v1")
    Draft202012Validator(report["properties"]["faults"]).validate(result["faults"])
    places = {fault["path"]: (fault["line"], fault["column"]) for fault in result["faults"]}
    assert places["$.imgae"] == (1, 21)


def test_it_says_where_it_checked_and_what_it_did_not(tmp_path: Path) -> None:
    rule = "when:\n  - manual: {}\nrequest_uri: gs://other-project-inbox/templates/r.yaml\n"
    file = written(tmp_path, "rule.yaml", rule)
    done = check(file, "--context", "other-project/europe-west4", cwd=tmp_path)
    assert done.status == 0, done.out
    assert "Checked for project other-project, region europe-west4" in done.err
    assert "the shipped one; --policy FILE takes another" in done.err
    assert "whether images, packages, accounts and buckets exist" in done.err
    assert "the request gs://other-project-inbox/templates/r.yaml: check its own file too" in done.err


def test_a_chosen_stack_that_does_not_run_gives_its_names_and_no_more(tmp_path: Path) -> None:
    file = written(tmp_path, "request.yaml", REQUEST.replace("my-project", "its-project"))
    state = tmp_path / "far" / ".trainmaster"
    state.mkdir(parents=True)
    chosen = {"TRAINMASTER_CONTEXT": f"local:{state}"}
    before = check(file, cwd=tmp_path, **chosen)
    assert before.status == 1
    assert "project trainmaster-local, region us-central1 (the names of a new local stack)" in before.err
    written(state, "project.json", '{"project": "its-project", "region": "europe-west4"}')
    done = check(file, cwd=tmp_path, **chosen)
    assert done.status == 0, done.out + done.err
    names = f"(the names of the stack on {str(state)!r})"
    assert f"Checked for project its-project, region europe-west4 {names}." in done.err


@pytest.mark.parametrize("verb", ["check", "plan"])
def test_without_a_context_the_names_are_those_of_this_folders_stack_and_never_of_another(
    verb: str, tmp_path: Path
) -> None:
    settings = {"HOME": str(tmp_path), "TRAINMASTER_CONFIG": str(tmp_path / "config")}
    file = written(tmp_path, "request.yaml", REQUEST.replace("my-project", "trainmaster-local"))
    for others in (1, 2):
        with ExitStack() as running:
            for number in range(others):
                state = running.enter_context(stack_on(tmp_path / "far" / f"{others}{number}"))
                register_stack(state, tmp_path / "config")
            new = trainmaster(verb, file, cwd=tmp_path, environment=settings)
        assert new.status == 0, new.out + new.err
        assert "(the names of a new local stack)" in new.err
    stopped = tmp_path / ".trainmaster"
    stopped.mkdir()
    written(stopped, "project.json", '{"project": "its-project", "region": "europe-west4"}')
    with stack_on(tmp_path / "far" / "3") as other:
        register_stack(other, tmp_path / "config")
        found = trainmaster(verb, file, cwd=tmp_path, environment=settings)
    assert found.status != 0
    assert "$.image: the policy does not allow it" in found.out + found.err
    if verb == "check":
        names = f"(the names of the stack on {str(stopped)!r})"
        assert f"Checked for project its-project, region europe-west4 {names}." in found.err


def test_a_stack_of_this_folder_that_runs_gives_its_names(tmp_path: Path) -> None:
    file = written(tmp_path, "request.yaml", REQUEST.replace("my-project", "local-project"))
    with stack_on(tmp_path / ".trainmaster"):
        found = check(file, cwd=tmp_path, TRAINMASTER_CONTEXT="")
    assert found.status == 0, found.out + found.err
    assert "project local-project, region us-central1 (the stack of this folder)" in found.err


def test_a_faulty_policy_is_refused_with_its_lines(tmp_path: Path) -> None:
    written(tmp_path, "policy.yaml", "schema: policy.v1\nimages: none\n")
    done = check(written(tmp_path, "request.yaml", REQUEST), "--policy", "policy.yaml", cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "policy.yaml:2:9: $.images: expected a list" in done.err


def test_what_contradicts_itself_in_a_policy_comes_with_the_other_faults_and_its_line(tmp_path: Path) -> None:
    shipped = (ROOT / "functions/policy.yaml").read_text()
    shipped = shipped.replace("web_access: false", "web_access: 0").replace(
        "evaluation: {machine: n1-standard-4", "evaluation: {machine: huge"
    )
    receiver = "notify:\n- {name: a, webhook: {secret: s, url: 'https://me:word@a.b/'}}\n"
    written(tmp_path, "policy.yaml", f"{shipped}{receiver}")
    done = check(written(tmp_path, "request.yaml", REQUEST), "--policy", "policy.yaml", cwd=tmp_path)
    places = re.findall(r"policy\.yaml:(\d+):\d+: (\S+):", done.err)
    lines = shipped.splitlines()
    number = {line.partition(":")[0]: str(at) for at, line in enumerate(lines, 1)}
    assert places == [
        (number["evaluation"], "$.evaluation.machine"),
        (number["web_access"], "$.web_access"),
        (str(len(lines) + 2), "$.notify[0].webhook.url"),
    ]
    assert "me:word" not in done.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.yaml", "nowhere.yaml: No such file or directory"),
        (".", ".: a folder; name the files in it, for example *.yaml"),
        ("/dev/null", "/dev/null: not a regular file"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_read_ends_with_2_and_the_others_are_checked(
    tmp_path: Path, name: str, said: str
) -> None:
    file = written(tmp_path, "request.yaml", "imgae: x")
    done = check(name, file, cwd=tmp_path)
    assert done.status == 2
    assert said in done.err
    assert "request.yaml:1:1: error: $.imgae" in done.out


def test_a_value_can_be_replaced_as_submit_does_in_requests_alone(tmp_path: Path) -> None:
    file = written(tmp_path, "request.yaml", REQUEST)
    replaced = "cluster.chief.machine=n9-huge"
    done = check(file, "--set", replaced, cwd=tmp_path)
    assert done.status == 1
    assert f"--set {replaced}: error: $.cluster.chief.machine" in done.out
    order = written(tmp_path, "order.yaml", "rollback: {model_name: flowers}\n")
    done = check(order, "--set", replaced, cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "--set changes requests alone: leave out " in done.err


@pytest.mark.parametrize("verb", ["check", "plan"])
def test_a_script_in_place_of_a_request_gets_the_command_that_submits_it(tmp_path: Path, verb: str) -> None:
    file = written(tmp_path, "fit it.py", '"""Trains."""\n')
    done = trainmaster(verb, file, cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert (done.status, done.out) == (2, "")
    said = (
        "fit it.py: a Python script, not a request. To submit it: trainmaster submit --script 'fit it.py'\n"
    )
    assert said in done.err
