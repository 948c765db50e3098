"""A dropped rule is checked in full: a valid one is accepted, and all faults of an invalid one are reported."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.core.retraining_cases import (
    BUCKETS,
    HOUR,
    IMAGE,
    REQUEST,
    RULE_REQUIREMENTS,
    document,
    dropped,
    faults,
    rule,
)
from tests.core.shipped import ROOT
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.retraining.book import MAX_RULES, Book, parse_book
from trainmaster.orchestrator.core.retraining.condition import (
    Age,
    Alert,
    Manual,
    NewImage,
    Schedule,
    Upstream,
    UpstreamEvent,
)
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.reading import rule_id_of, template_uri
from trainmaster.orchestrator.core.retraining.rule import Rule, WhileRunning
from trainmaster.orchestrator.core.sizes import MAX_BOOK_BYTES, MAX_RULE_BYTES

EVERYTHING = f"""
when:
  - new_data: {{objects: "gs://data-1/cassava/**", min_objects: 100, min_bytes: 1000, quiet_s: 300, max_wait_s: 7200}}
  - schedule: {{cron: "0 3 * * 1", time_zone: Europe/Amsterdam}}
  - new_image: {{repository: {IMAGE}, tag: latest}}
  - alert: {{policy: "cassava drift*", model: projects/p/locations/r/models/123}}
  - age: {{older_than_s: 604800}}
  - upstream: {{model_name: features, event: succeeded}}
  - manual: {{}}
request:
  model_name: cassava
  image: ${{image.uri:-{IMAGE}@sha256:{"0" * 64}}}
  args:
    - --data=${{data.newest_dir_uri:-gs://data-1/cassava/}}
    - --weights=${{champion.model_uri:-imagenet}}
    - --why=${{firing.condition}} ${{alert.summary:-}} $${{not.filled}}
  cluster: {{chief: {{machine: n1-standard-8}}}}
while_running: queue_one
cooldown_s: 3600
max_per_day: 6
"""


def test_a_rule_is_read_with_all_that_it_says() -> None:
    read = instance_of(Rule, dropped(EVERYTHING, name="rules/Vision/Cassava.yaml", generation=7))
    assert (read.rule_id, read.generation, read.model_name) == ("vision.cassava", 7, "cassava")
    assert read.conditions == (
        NewData(
            objects="gs://data-1/cassava/**", min_objects=100, min_bytes=1000, quiet_s=300, max_wait_s=7200
        ),
        Schedule(cron="0 3 * * 1", time_zone="Europe/Amsterdam"),
        NewImage(repository=IMAGE, tag="latest"),
        Alert(policy="cassava drift*", model="projects/p/locations/r/models/123"),
        Age(older_than_s=7 * 86400),
        Upstream(model_name="features", event=UpstreamEvent.SUCCEEDED),
        Manual(),
    )
    assert (read.while_running, read.cooldown, read.max_per_day) == (WhileRunning.QUEUE_ONE, HOUR, 6)
    assert read.writes_uri == "gs://models/cassava/"
    assert {str(placeholder) for placeholder in read.placeholders} >= {
        "${firing.condition}",
        "${champion.model_uri:-imagenet}",
    }


def test_a_rule_may_leave_out_everything_with_a_default() -> None:
    read = rule({"manual": {}})
    assert (read.while_running, read.max_per_day, read.enabled) == (WhileRunning.SKIP, 24, True)
    assert not read.cooldown
    assert rule({"manual": None}).conditions == read.conditions


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "rules").glob("*.yaml")), ids=lambda path: path.name
)
def test_an_example_is_a_sound_rule(path: Any) -> None:
    template = (ROOT / "examples" / "cassava.yaml").read_bytes()
    text = path.read_text().replace("my-project-inbox", BUCKETS.inbox)
    assert isinstance(dropped(text, name=f"rules/{path.name}", template=template), Rule)


def test_a_book_reads_back_what_it_wrote() -> None:
    book = (
        Book()
        .with_rule(rule({"manual": {}}))
        .with_rule(rule({"age": {"older_than_s": 60}}, name="rules/b.yaml"))
    )
    assert parse_book(json.loads(json.dumps(encoded(book)))) == book
    assert parse_book({"schema": "rule_book.v1", "rules": []}) == Book()


@pytest.mark.parametrize("damaged", [None, [], {"rules": 1}, {"rules": [{}]}, {"rules": ["x"]}])
def test_a_damaged_book_is_an_error_and_not_an_empty_one(damaged: object) -> None:
    with pytest.raises(ValueError, match="not a rule book"):
        parse_book(damaged)


def test_an_older_generation_never_takes_a_newer_ones_place() -> None:
    older, newer = rule({"manual": {}}, generation=1), rule({"age": {"older_than_s": 60}}, generation=2)
    assert Book().with_rule(newer).with_rule(older) == Book().with_rule(older).with_rule(newer)


def test_every_fault_of_what_is_watched_is_reported_at_its_place() -> None:
    found = faults(
        dropped(
            document(
                {"new_data": {"objects": "gs://data-1/*/_SUCCESS", "exclude": ["**/*.log", 7]}},
                {"new_data": {"objects": "gs://data-1/a/*.csv", "each": "folder", "exclude": []}},
                {
                    "new_data": {
                        "objects": "gs://data-1/a/**",
                        "each": "file",
                        "exclude": ["gs://data-2/a/b", "gs://data-1/a/b", "gs://data-1/a/", "gs://data-1/**"],
                    }
                },
            )
        )
    )
    assert {path.removeprefix("$.when"): fault.problem for path, fault in found.items()} == {
        "[0].new_data.exclude[0]": "not in the expected format",
        "[0].new_data.exclude[1]": "expected a string",
        "[0].new_data.objects": "it matches only temporary or hidden objects, or markers, and these never count",
        "[1].new_data.exclude": "too few entries",
        "[1].new_data.objects": "each: folder needs a pattern that matches several folders",
        "[2].new_data.each": "not an allowed value",
        "[2].new_data.exclude[0]": "no object of this bucket could match objects",
        "[2].new_data.exclude[2]": "it excludes everything that objects matches",
        "[2].new_data.exclude[3]": "it excludes everything that objects matches",
    }
    assert found["$.when[1].new_data.objects"].repair == "write gs://data-1/a/**, or leave out each"
    assert found["$.when[2].new_data.exclude[0]"].repair == "begin it with gs://data-1/"


def test_a_request_needs_a_default_where_the_first_firing_has_no_value() -> None:
    watching = {"new_data": {"objects": "gs://data-1/**"}}
    fault = faults(dropped(document(watching, request={"args": ["${data.since}"]})))["$.request.args[0]"]
    assert fault.problem == "the first firing has no value for it, so the rule could never fire"
    assert fault.repair == "give it a default: ${data.since:-1970-01-01T00:00:00Z}"
    assert rule(watching, request={"args": [fault.repair.partition(": ")[2]]}).placeholders


@pytest.mark.parametrize("objects", ["gs://data-1/sales/", "gs://data-1/*/a.csv", "gs://data-1/**.csv"])
def test_a_pattern_of_several_folders_may_fire_for_each(objects: str) -> None:
    assert rule({"new_data": {"objects": objects, "each": "folder"}}).new_data[0].each == "folder"


def test_two_files_never_share_a_rule_id() -> None:
    book = Book().with_rule(rule({"manual": {}}, name="rules/a/b.yaml"))
    fault = faults(dropped(document({"manual": {}}), name="rules/A.b.yml", generation=2, book=book))["$"]
    assert fault.problem == "rules/a/b.yaml already has the rule id a.b"
    assert isinstance(dropped(document({"manual": {}}), name="rules/a/b.yaml", generation=2, book=book), Rule)


def test_every_fault_is_reported_at_once_at_its_place_in_the_rule() -> None:
    found = faults(
        dropped(
            document(
                {"new_data": {"objects": "gs://inbox/x/**", "quiet": 1}},
                {"schedule": {"cron": "0 0 30 2 *", "time_zone": "Europe/Amsterdm"}},
                {"schedule": {"cron": "61 * * * *"}},
                {"alert": {}},
                {"new_date": {}},
                request={
                    "cluster": {"chief": {"machine": "n1-standard-9"}},
                    "args": ["${data.newest_ur}", "${rule.id"],
                    "env": {"TF_CONFIG": "x", "${rule.id}": "x"},
                },
                while_running="queue",
            ),
            name="rules/über.yaml",
        )
    )
    assert sorted(found) == [
        "$",
        "$.request.args[0]",
        "$.request.args[1]",
        "$.request.cluster.chief.machine",
        "$.request.env.TF_CONFIG",
        "$.request.env['${rule.id}']",
        "$.when[0].new_data.objects",
        "$.when[0].new_data.quiet",
        "$.when[1].schedule.cron",
        "$.when[1].schedule.time_zone",
        "$.when[2].schedule.cron",
        "$.when[3].alert",
        "$.when[4].new_date",
        "$.while_running",
    ]
    repairs = {path: fault.repair for path, fault in found.items()}
    assert repairs["$.request.args[0]"] == "did you mean 'data.newest_uri'?"
    assert repairs["$.when[1].schedule.time_zone"] == "did you mean 'Europe/Amsterdam'?"
    assert repairs["$.when[4].new_date"] == "did you mean 'new_data'?"
    assert repairs["$.when[0].new_data.quiet"] == "did you mean 'quiet_s'?"
    assert "never occurs" in found["$.when[1].schedule.cron"].problem
    assert "minute" in found["$.when[2].schedule.cron"].problem


FORMAT = "not in the expected format"
FIXED = "must not depend on what fires"


@pytest.mark.parametrize(
    ("when", "request_", "path", "says"),
    [
        ({"manual": {}}, {"labels": {"a": "${firing.time}"}}, "$.request.labels.a", FORMAT),
        ({"manual": {}}, {"service_account": "${champion.run_id}"}, "$.request.service_account", FORMAT),
        ({"manual": {}}, {"model_uri": "gs://models/${rule.id}/${run_id}"}, "$.request.model_uri", FIXED),
        ({"manual": {}}, {"model_name": "${rule.id}"}, "$.request.model_name", FIXED),
        ({"manual": {}}, {"args": ["${image.uri}"]}, "$.request.args[0]", "can give it a value"),
        ({"manual": {}}, {"args": ["${data.count}"]}, "$.request.args[0]", "can give it a value"),
        (
            {"manual": {}},
            {"output": {"prefix_uri": "gs://models/${rule.id}"}},
            "$.request.output.prefix_uri",
            FIXED,
        ),
        (
            {"new_image": {"repository": "evil.example/a/b", "tag": "latest"}},
            {"image": "${image.uri}"},
            "$.request.image",
            "the policy does not allow it",
        ),
        (
            {"new_image": {"repository": IMAGE, "tag": "v*"}},
            {"image": f"{IMAGE}:${{image.tag}}"},
            "$.request.image",
            "by its tag",
        ),
        (
            {"new_image": {"repository": IMAGE, "tag": "v*"}},
            {
                "image": "${image.uri}",
                "cluster": {
                    "chief": {"machine": "n1-standard-8"},
                    "evaluators": {"count": 1, "machine": "n1-standard-8", "image": f"{IMAGE}:latest"},
                },
            },
            "$.request.cluster.evaluators.image",
            "by its tag",
        ),
        (
            {"new_image": {"repository": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17", "tag": "*"}},
            {
                "python_package": {
                    "executor_image": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17:${image.tag}",
                    "uris": ["gs://my-project-data/a.whl"],
                    "module": "a",
                }
            },
            "$.request.python_package.executor_image",
            "by its tag",
        ),
        (
            {"manual": {}},
            {"args": ["${rule.id:-\x7f}"]},
            "$.request.args[0]",
            "the default is not plain text",
        ),
    ],
)
def test_a_request_is_checked_with_what_the_conditions_would_fill_in(
    when: dict[str, Any], request_: dict[str, Any], path: str, says: str
) -> None:
    assert says in faults(dropped(document(when, request=request_)))[path].problem


def test_a_default_is_checked_too() -> None:
    image = {"new_image": {"repository": IMAGE, "tag": "latest"}}
    request = {"image": "${image.uri:-evil.example/a/b:latest}"}
    assert isinstance(dropped(document(image, request=request)), Rule)
    found = faults(dropped(document(image, {"manual": {}}, request=request)))
    assert found["$.request.image"].found == "'evil.example/a/b:latest'"
    champion = faults(dropped(document({"manual": {}}, request={"labels": {"a": "${champion.run_id:-A}"}})))
    assert "sample values" in champion["$.request.labels.a"].repair


def test_a_place_that_only_some_conditions_fill_needs_a_default() -> None:
    two: tuple[dict[str, Any], ...] = (
        {"upstream": {"model_name": "features", "event": "succeeded"}},
        {"manual": {}},
    )
    fault = faults(dropped(document(*two, request={"args": ["${upstream.run_id}"]})))["$.request.args[0]"]
    assert "a firing by manual has no value for it" in fault.problem
    assert isinstance(dropped(document(*two, request={"args": ["${upstream.run_id:-}"]})), Rule)


def test_a_boolean_that_yaml_made_of_a_word_is_quoted_as_written() -> None:
    text = yaml.safe_dump(document({"manual": {}})).replace("request:", "request:\n  env: {SAVE: no}")
    assert faults(dropped(text))["$.request.env.SAVE"].found == "no"


def test_a_gcloud_file_is_a_request_too() -> None:
    study = yaml.safe_load((ROOT / "schemas/examples/valid/training_request.v1.tuning.yaml").read_text())
    assert isinstance(dropped({"when": [{"manual": {}}], "request": study}), Rule)
    vertex = {
        "displayName": "cassava-${rule.id}",
        "studySpec": {"metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}], "parameters": []},
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "trialJobSpec": {"workerPoolSpecs": []},
    }
    found = faults(dropped({"when": [{"manual": {}}], "request": vertex}))
    assert "must not depend" in found["$.request.displayName"].problem


class TestTemplate:
    """A request that lies beside the rules."""

    URI = "gs://inbox/templates/cassava.yaml"

    def drop(self, template: bytes | None, uri: str = URI) -> Rule | Refused:
        return dropped({"when": [{"manual": {}}], "request_uri": uri}, template=template)

    def test_it_is_checked_when_the_rule_is_dropped(self) -> None:
        read = instance_of(Rule, self.drop(yaml.safe_dump(REQUEST | {"args": ["${rule.id}"]}).encode()))
        assert (read.request, read.request_uri, read.model_name) == (None, self.URI, "cassava")
        assert [str(placeholder) for placeholder in read.placeholders] == ["${rule.id}"]

    def test_its_faults_are_at_its_name_and_tell_the_place_within(self) -> None:
        refused = instance_of(Refused, self.drop(b"model_name: cassava\nimage: x/y:z\nclutser: {}\n"))
        assert {fault.path for fault in refused.faults} == {"$.request_uri"}
        told = [fault.problem for fault in refused.faults]
        assert f"{self.URI} at $.clutser: unknown key 'clutser'" in told
        assert f"{self.URI} at $.image: the policy does not allow it" in told

    @pytest.mark.parametrize("template", [None, b"", b"[]", b"a: [", b"x" * 300_000])
    def test_a_template_that_is_not_a_request_is_refused(self, template: bytes | None) -> None:
        assert set(faults(self.drop(template))) == {"$.request_uri"}

    @pytest.mark.parametrize(
        "uri",
        ["gs://inbox/requests/a.yaml", "gs://inbox/rules/a.yaml", "gs://other/a.yaml", "gs://inbox/a/", "a"],
    )
    def test_it_lies_in_the_inbox_where_nothing_starts(self, uri: str) -> None:
        assert set(faults(self.drop(b"", uri))) == {"$.request_uri"}
        assert template_uri(f"request_uri: {uri}".encode(), "rules/a.yaml", RULE_REQUIREMENTS) is None

    def test_its_name_is_known_before_the_rule_is_checked(self) -> None:
        text = f"request_uri: {self.URI}".encode()
        assert template_uri(text, "rules/a.yaml", RULE_REQUIREMENTS) == self.URI
        assert template_uri(b"request: {}", "rules/a.yaml", RULE_REQUIREMENTS) is None
        assert template_uri(b"- : [", "rules/a.yaml", RULE_REQUIREMENTS) is None


def test_a_rule_has_one_request() -> None:
    both = document({"manual": {}}, request_uri="gs://inbox/templates/x.yaml")
    assert "$.request_uri" in faults(dropped(both))
    assert set(faults(dropped({"when": [{"manual": {}}]}))) == {"$.request"}


@pytest.mark.parametrize("text", ["", "[]", "when: [", "a: &b 1\nc: *b", "\x00", "just words"])
def test_a_rule_that_is_not_a_mapping_is_refused(text: str) -> None:
    refused = instance_of(Refused, dropped(text))
    assert refused.faults


def test_a_huge_rule_is_refused_unread() -> None:
    assert "too large" in faults(dropped("#" * (MAX_RULE_BYTES + 1)))["$"].problem


def test_a_full_book_takes_no_more_rules() -> None:
    one = rule({"manual": {}})
    book = Book(rules=tuple(_renamed(one, f"rule-{number}") for number in range(MAX_RULES)))
    assert "too many rules" in faults(dropped(document({"manual": {}}), book=book))["$"].problem
    instance_of(Rule, dropped(document({"manual": {}}), name="rules/rule-7.yaml", book=book))


def test_a_book_that_would_grow_too_large_takes_no_more_rules() -> None:
    one = rule({"manual": {}})
    large = replace(one, document={**one.document, "description": "x" * MAX_BOOK_BYTES})
    full = Book(rules=(_renamed(large, "large"),))
    assert "too large" in faults(dropped(document({"manual": {}}), book=full))["$"].problem


def _renamed(one: Rule, rule_id: str) -> Rule:
    return replace(one, rule_id=rule_id, dropped_name=f"rules/{rule_id}.yaml")


@pytest.mark.parametrize(
    ("name", "rule_id"),
    [
        ("rules/a.yaml", "a"),
        ("rules/Vision/Cassava.YML", "vision.cassava"),
        ("rules/9.json", "9"),
        ("rules/.yaml", None),
        ("rules/-a.yaml", None),
        ("rules/a b.yaml", None),
        (f"rules/{'a' * 63}.yaml", "a" * 63),
        (f"rules/{'a' * 64}.yaml", None),
    ],
)
def test_a_rules_id_comes_from_its_files_name(name: str, rule_id: str | None) -> None:
    assert rule_id_of(name) == rule_id
