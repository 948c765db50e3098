"""The request that `submit` sends for a source and its options, and every fault and doubt about it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.narrowing import present
from trainmaster.client.context import context_in_cloud
from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.send import check_names
from trainmaster.client.submission.settings import parse_settings
from trainmaster.client.submission.source import RequestSource, pasted_source
from trainmaster.client.submission.terms import terms_with_policy
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.resources import ROOT

TERMS = terms_with_policy(context_in_cloud("my-project", "us-central1"))
IMAGE = "us-central1-docker.pkg.dev/my-project/trainmaster/own:1"
REQUEST = f"# mine\nmodel_name: m\nimage: {IMAGE}\ncluster:\n  chief: {{machine: n1-standard-4}}\n"
SCRIPTED = "model_name: m\nscript: {file: train.py}\ncluster: {chief: {machine: n1-standard-4}}\n"
GCLOUD = "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n  containerSpec: {imageUri: IMAGE}\n".replace(
    "IMAGE", IMAGE
)


def examined(text: str = REQUEST, file: str = "request.yaml", **edits: Any) -> Examination:
    edits["settings"] = parse_settings(edits.get("settings", ()), edits.pop("matrix", ()))
    source = RequestSource(file=file, content=text.encode(), folder=Path(file).parent)
    return examination_of(source, TERMS, Edits(**edits))


def test_a_file_without_edits_is_sent_as_it_is() -> None:
    found = examined()
    assert (found.object_name, found.content) == ("requests/m.yaml", REQUEST.encode())
    assert found.packed is None


@pytest.mark.parametrize(
    ("text", "file", "said"),
    [
        (
            "cancel: {run: a}\n",
            "o.yaml",
            "o.yaml is an order. Give it with trainmaster rules fire, champions",
        ),
        ("when: []\n", "my rule.yaml", "trainmaster rules apply 'my rule.yaml'"),
        (REQUEST, "request.txt", "request.txt: $: the file's name must end in .yaml, .yml, .json"),
        (REQUEST, ".request.yaml", "the service ignores hidden and temporary files"),
        (REQUEST, "a\nb.yaml", "rename it"),
        ("model_name: m\n", "m.yaml", "m.yaml:1:1: $.image: missing"),
    ],
)
def test_a_file_that_submit_does_not_take_is_refused_with_the_right_verb(
    text: str, file: str, said: str
) -> None:
    assert said in examined(text, file).refusal


def test_a_pasted_text_is_examined_without_its_script_which_is_elsewhere() -> None:
    found = examination_of(pasted_source(SCRIPTED.replace("\n", "\r\n"), "C:\\my\\request.yaml"), TERMS)
    assert (found.faults, found.packed, found.object_name) == ((), None, "requests/m.yaml")
    assert found.request is not None
    assert "run: trainmaster submit FILE" in found.refusal
    with pytest.raises(ClientRefused, match="at most 200 characters"):
        pasted_source(REQUEST, "r" * 300)


EXAMPLES = sorted((ROOT / "examples").glob("**/*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_have_no_faults(example: Path) -> None:
    """Google retires its containers, so the example that needs one is refused by the shipped policy."""
    retired = "has been unavailable since"
    root = example.parent if "script:" in example.read_text() else None
    found = examined(example.read_text(), str(example), root=root)
    assert [fault for fault in found.faults if retired not in fault.problem] == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\x00", "the file is not UTF-8 text"),
        (b"", "the document is empty"),
        (b"- 1", "a request must be a mapping"),
        (b"a: 1\n" * 400_000, "the file is too large for a request"),
    ],
)
def test_content_that_is_not_a_request_is_one_clear_fault(content: bytes, said: str) -> None:
    found = examination_of(RequestSource(file="file.yaml", content=content), TERMS)
    assert found.kind == "request"
    (fault,) = found.faults
    assert said in fault.problem


def test_an_order_has_the_faults_of_its_schema() -> None:
    (fault,) = examined('{"fire": {"rul": "a"}}', "order.json").faults
    assert (fault.path, fault.place and fault.place.column) == ("$.fire.rul", 11)


def test_a_request_in_another_form_is_sent_as_it_is() -> None:
    assert examined(GCLOUD, "job.yaml").content == GCLOUD.encode()


def test_a_message_gets_no_name_from_its_file() -> None:
    source = RequestSource(file="job.yaml", content=GCLOUD.encode())
    assert examination_of(source, TERMS).faults == ()
    assert examination_of(source, TERMS, is_message=True).faults


def test_two_files_of_one_name_are_refused() -> None:
    with pytest.raises(ClientRefused, match=r"a/request.yaml, b/request.yaml have the same name"):
        check_names(
            [examined(file="a/request.yaml"), examined(file="b/request.yaml"), examined(file="c.yaml")]
        )


def test_a_file_that_was_read_in_part_is_not_said_to_have_that_size() -> None:
    (fault,) = examined("x" * (256 * 1024 + 1)).faults
    assert fault.found == "more than 262144 bytes"


def test_the_bounds_name_the_most_that_it_may_cost_and_the_policys_time_limit() -> None:
    limit = "Set another limit with --set scheduling.timeout_s=SECONDS"
    day = examined().bounds
    assert day.startswith("It may run for 24 h and cost up to ")
    assert day.endswith(f" USD. {limit}")
    hour = examined(settings=["scheduling.timeout_s=3600"]).bounds
    assert hour.startswith("It may cost up to 0.")
    assert hour.endswith(" USD.")
    three = examined(settings=["matrix.epochs=[1, 2, 3]"]).bounds
    assert three.startswith("Its 3 runs may each run for 24 h and together cost up to ")


def test_the_bound_counts_retries_on_the_larger_machines_of_the_policy() -> None:
    retries = ["scheduling.timeout_s=3600", "scheduling.retries=1"]
    same, larger = (
        examined(settings=retries),
        examined(settings=[*retries, "scheduling.retry_on=[out_of_memory]"]),
    )
    assert present(present(larger.bound).at_most) > present(present(same.bound).at_most)


def test_what_runs_on_this_machine_would_cost_that_in_the_cloud() -> None:
    local = replace(TERMS, context=replace(TERMS.context, state=Path("state")))
    source = RequestSource(file="r.yaml", content=REQUEST.encode())
    assert " USD in the cloud." in examination_of(source, local).bounds
    unknown = replace(TERMS, prices=Prices(as_of="2026-01-01", currency="USD", rows=()))
    only_time = "It may run for 24 h. Set another limit with --set scheduling.timeout_s=SECONDS"
    assert examination_of(source, unknown).bounds == only_time


def test_the_request_in_a_rule_has_its_warnings_at_their_places_in_the_rule() -> None:
    rule = (
        "when:\n- schedule: {cron: '0 3 * * 1'}\nrequest:\n  model_name: m\n"
        f"  image: {IMAGE}\n  cluster:\n    chief: {{machine: n1-standard-4}}\n"
        "  args: ['--data=gs://$BUCKET/x', '--at=${firing.time}', '--run=${run_id}']\n"
        "  champion: {metric: val_loss, goal: maximize}\n"
    )
    found = examined(rule, "rule.yaml")
    assert found.faults == ()
    places = [(fault.path, fault.place.line if fault.place else 0) for fault in found.warnings]
    assert places == [("$.request.champion.goal", 9), ("$.request.args[0]", 8)]


def test_the_model_that_a_run_would_start_from_is_not_looked_up() -> None:
    for word, is_resolved in (("--start_from=champion", True), ("--start_from=gs://b/m/", False)):
        found = examined(f"{REQUEST}args: [{word}]\n")
        assert found.faults == ()
        assert any("the model of --start_from" in text for text in found.not_checked) == is_resolved
