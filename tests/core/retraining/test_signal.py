"""Pushed images, alerts and notices become signals; other messages are ignored or refused with a reason."""

import json
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.deciding import ordered
from tests.core.retraining_cases import IMAGE, NOON, rule
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import PubsubMessage
from trainmaster.orchestrator.core.requests.incoming import Ignored
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.filling import unfit
from trainmaster.orchestrator.core.retraining.signals import (
    SUMMARY_MAX_CHARS,
    ParsedNotice,
    Signal,
    matches,
    one_line,
    parse_alert,
    parse_image_push,
    parse_notice,
)

DIGEST = f"sha256:{'0f' * 32}"


def message(document: Any, *, message_id: str = "m1") -> PubsubMessage:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return PubsubMessage(message_id=message_id, publish_time=NOON, attributes={}, data=data)


def signal_of(read: Signal | Ignored) -> Signal:
    assert isinstance(read, Signal), read
    return read


PUSH = {"action": "INSERT", "digest": f"{IMAGE}@{DIGEST}", "tag": f"{IMAGE}:latest"}


class TestImages:
    """What Artifact Registry publishes to the topic gcr."""

    def test_a_push_gives_the_image_by_its_digest(self) -> None:
        signal = signal_of(parse_image_push(message(PUSH)))
        assert signal.kind is ConditionKind.NEW_IMAGE
        assert signal.values == {
            "image.uri": f"{IMAGE}@{DIGEST}",
            "image.digest": DIGEST,
            "image.tag": "latest",
        }

    @pytest.mark.parametrize(
        ("repository", "tag", "matched"),
        [
            (IMAGE, "latest", True),
            (IMAGE, "l*", True),
            (IMAGE, "v1", False),
            (f"{IMAGE}-gpu", "latest", False),
        ],
    )
    def test_it_fires_rules_of_its_repository_tag(self, repository: str, tag: str, matched: bool) -> None:
        one = rule({"new_image": {"repository": repository, "tag": tag}}, request={"image": "${image.uri}"})
        assert matches(one, signal_of(parse_image_push(message(PUSH)))) is matched

    def test_a_port_in_the_host_is_part_of_the_repository(self) -> None:
        push = {"action": "INSERT", "digest": f"host:5000/a/b@{DIGEST}", "tag": "host:5000/a/b:v1"}
        assert signal_of(parse_image_push(message(push))).facts["repository"] == "host:5000/a/b"

    @pytest.mark.parametrize(
        ("push", "says"),
        [
            ({"action": "DELETE", "tag": f"{IMAGE}:1.1"}, f"the tag '{IMAGE}:1.1' was removed"),
            (
                {"action": "DELETE", "digest": f"{IMAGE}@{DIGEST}"},
                f"the image '{IMAGE}@{DIGEST}' was deleted",
            ),
            ({"action": "INSERT", "digest": f"{IMAGE}@{DIGEST}"}, "without a tag"),
        ],
    )
    def test_what_is_no_push_of_a_tag_is_passed_over(self, push: dict[str, str], says: str) -> None:
        read = instance_of(Ignored, parse_image_push(message(push)))
        assert says in read.reason

    @pytest.mark.parametrize("suffix", ["", ".sig", ".att", ".sbom", ".sbom.sig", "-cosign"])
    @pytest.mark.parametrize("subject", [f"sha256-{'0' * 63}1", f"sha512-{'a' * 128}"])
    def test_what_is_stored_about_an_image_is_no_image(self, subject: str, suffix: str) -> None:
        push = {**PUSH, "tag": f"{IMAGE}:{subject}{suffix}"}
        assert "about an image, not an image" in instance_of(Ignored, parse_image_push(message(push))).reason

    @pytest.mark.parametrize("tag", ["sha256-abc", "sha-0123456", "v1.sig", f"build-sha256-{'0' * 64}"])
    def test_a_tag_that_only_resembles_those_is_an_image(self, tag: str) -> None:
        push = {**PUSH, "tag": f"{IMAGE}:{tag}"}
        assert signal_of(parse_image_push(message(push))).values["image.tag"] == tag

    def test_an_image_of_several_architectures_is_one(self) -> None:
        """The manifest of each platform is pushed without a tag, and the index that lists them with it."""
        pushes = [{**PUSH, "digest": f"{IMAGE}@sha256:{number * 64}"} for number in "abc"]
        for push in pushes[:2]:
            del push["tag"]
        read = [parse_image_push(message(push)) for push in pushes]
        assert [type(one) for one in read] == [Ignored, Ignored, Signal]
        assert signal_of(read[2]).values["image.digest"] == f"sha256:{'c' * 64}"

    @pytest.mark.parametrize(
        "push",
        [
            b"no json",
            b"[1]",
            {},
            {"action": "MOVE"},
            {"action": "INSERT", "tag": f"{IMAGE}:latest"},
            {"action": "INSERT", "tag": f"{IMAGE}:latest", "digest": f"{IMAGE}@sha256:short"},
            {"action": "INSERT", "tag": "other/image:latest", "digest": f"{IMAGE}@{DIGEST}"},
            {"action": "INSERT", "tag": "latest", "digest": f"{IMAGE}@{DIGEST}"},
            {"action": "INSERT", "tag": IMAGE, "digest": f"{IMAGE}@{DIGEST}"},
            {"action": "INSERT", "tag": f"{IMAGE}:a\nb", "digest": f"{IMAGE}@{DIGEST}"},
        ],
    )
    def test_what_no_registry_writes_is_malformed(self, push: Any) -> None:
        with pytest.raises(EventMalformed, match="m1"):
            parse_image_push(message(push))


NO_STATES: tuple[object, ...] = ({}, [], None, 3)
INCIDENT: dict[str, Any] = {
    "incident": {
        "incident_id": "0.opqiw61fsv7p",
        "scoping_project_id": "internal-project",
        "scoping_project_number": 12345,
        "url": "https://console.cloud.google.com/monitoring/alerting/incidents/0.opqiw61fsv7p?project=internal-project",
        "started_at": 1577840461,
        "ended_at": None,
        "state": "open",
        "resource_id": "11223344",
        "resource_name": "cassava endpoint",
        "resource": {
            "type": "aiplatform.googleapis.com/Endpoint",
            "labels": {"endpoint_id": "55", "location": "us-central1", "project_id": "internal-project"},
        },
        "resource_type_display_name": "Vertex AI Endpoint",
        "metric": {
            "type": "aiplatform.googleapis.com/model_monitoring/feature_drift_deviation",
            "displayName": "Feature drift",
            "labels": {"deployed_model_id": "1645828169292316672"},
        },
        "metadata": {"system_labels": {}, "user_labels": {}},
        "policy_name": "cassava drift / endpoint",
        "policy_user_labels": {"model": "1234567890"},
        "documentation": {"content": "…", "mime_type": "text/markdown"},
        "condition": {"name": "projects/p/alertPolicies/1/conditions/2", "displayName": "drift"},
        "condition_name": "drift",
        "threshold_value": "0.3",
        "observed_value": "0.9",
        "summary": "Feature drift for cassava endpoint\n is above the threshold of 0.3 with a value of 0.9.",
    },
    "version": "1.2",
}


def incident(**changes: Any) -> dict[str, Any]:
    return {**INCIDENT, "incident": {**INCIDENT["incident"], **changes}}


class TestAlerts:
    """What Cloud Monitoring publishes."""

    def test_an_incident_that_opens_is_a_signal(self) -> None:
        signal = signal_of(parse_alert(message(INCIDENT)))
        assert (signal.kind, signal.id) == (ConditionKind.ALERT, "alert/0.opqiw61fsv7p")
        assert signal.values == {
            "alert.policy": "cassava drift / endpoint",
            "alert.incident_id": "0.opqiw61fsv7p",
            "alert.summary": "Feature drift for cassava endpoint is above the threshold of 0.3 with a value of 0.9.",
        }

    @pytest.mark.parametrize(
        ("alert", "matched"),
        [
            ({"policy": "cassava drift*"}, True),
            ({"policy": "*"}, True),
            ({"policy": "cassava"}, False),
            ({"policy": "Cassava drift*"}, False),
            ({"model": "projects/any/locations/us-central1/models/1234567890"}, True),
            ({"model": "1645828169292316672"}, True),
            ({"model": "projects/any/locations/us-central1/models/99"}, False),
            ({"policy": "cassava*", "model": "99"}, False),
            ({"policy": "cassava*", "model": "1234567890"}, True),
        ],
    )
    def test_it_fires_rules_by_policy_and_model(self, alert: dict[str, str], matched: bool) -> None:
        assert matches(rule({"alert": alert}), signal_of(parse_alert(message(INCIDENT)))) is matched

    @pytest.mark.parametrize(
        ("wanted", "matched"),
        [
            ("projects/my-project/locations/us-central1/models/9", True),
            ("projects/*/locations/*/models/9", True),
            ("9", True),
            ("8", False),
            ("projects/my-project/locations/europe-west4/models/9", False),
            ("projects/my-project/locations/us-central1/endpoints/9", False),
        ],
    )
    def test_a_model_is_the_same_by_its_projects_id_and_number(self, wanted: str, matched: bool) -> None:
        labels = {"model": "projects/12345/locations/us-central1/models/9@2"}
        signal = signal_of(parse_alert(message(incident(policy_user_labels=labels))))
        assert matches(rule({"alert": {"model": wanted}}), signal) is matched

    def test_every_notification_of_an_incident_is_the_same_signal(self) -> None:
        first, again = (
            parse_alert(message(incident(renotify=flag), message_id=f"m{flag}")) for flag in (False, True)
        )
        assert signal_of(first).id == signal_of(again).id

    @pytest.mark.parametrize("state", ["open", "OPEN", "Open", " open\n"])
    def test_the_state_is_read_as_it_is_meant(self, state: str) -> None:
        signal = signal_of(parse_alert(message(incident(state=state))))
        assert (signal.id, signal.warning) == ("alert/0.opqiw61fsv7p", "")

    @pytest.mark.parametrize("version", ["1.3", "2", 1.2, None, "1.2 beta"])
    def test_another_version_is_read_with_a_warning_if_the_fields_are_there(self, version: object) -> None:
        signal = signal_of(parse_alert(message({**INCIDENT, "version": version})))
        assert signal.values["alert.incident_id"] == "0.opqiw61fsv7p"
        assert signal.warning.startswith("message 'm1' has the version ")

    def test_another_version_without_the_fields_is_no_alert(self) -> None:
        read = instance_of(Ignored, parse_alert(message({"version": "3", "incident": {"id": "x"}})))
        assert (
            read.reason
            == "message 'm1' is not an alert, which has an incident with an incident_id: it has incident, version, and the version '3'"
        )
        assert read.severity == "WARNING"

    @pytest.mark.parametrize("state", ["closed", "CLOSED", "acknowledged", "firing"])
    def test_an_incident_that_does_not_open_is_passed_over(self, state: str) -> None:
        read = instance_of(Ignored, parse_alert(message(incident(state=state, ended_at=1577877071))))
        assert (repr(state) in read.reason, read.severity) == (True, "INFO")

    def test_a_test_notification_is_about_no_incident(self) -> None:
        """As the console sends it: https://cloud.google.com/monitoring/support/notification-options#test_channels"""
        incident = {"incident_id": "12345", "state": "OPEN", "summary": "Test Incident", "policy_name": "P"}
        read = instance_of(Ignored, parse_alert(message({"version": "test", "incident": incident})))
        assert (read.reason[:19], read.severity) == ("a test notification", "INFO")

    @pytest.mark.parametrize(
        ("document", "says"),
        [
            (b"\xff", "is not JSON"),
            (b"This is a test", "is not JSON"),
            (b"[" * 100_000, "is not JSON"),
            ([], "a list where an alert"),
            ({}, "it has nothing"),
            ({"version": "1.2", "alerts": []}, "it has alerts, version"),
            ({"version": "1.2", "incident": None}, "is not an alert, which has an incident"),
            (incident(state=None), "is None"),
            ({"logName": "projects/p/logs/model_monitoring_anomaly"}, "it has logName"),
        ],
    )
    def test_what_is_no_alert_starts_nothing_and_is_no_error(self, document: Any, says: str) -> None:
        read = instance_of(Ignored, parse_alert(message(document)))
        assert says in read.reason
        assert read.severity == "WARNING"


def notice(kind: str, **data: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "n1", "type": kind, "time": "2026-03-04T11:59:00Z", "data": data}


class TestNotices:
    """What this service itself publishes."""

    RUN: ClassVar = {
        "run_id": "features-1",
        "model_name": "features",
        "model_uri": "gs://models/features/features-1/model/",
    }

    def test_a_run_that_succeeded_is_a_signal_and_an_end(self) -> None:
        parsed = instance_of(
            ParsedNotice,
            parse_notice(message(notice("trainmaster.run.succeeded.v1", state="succeeded", **self.RUN))),
        )
        assert parsed.ended_run_id == "features-1"
        assert parsed.signal is not None
        assert parsed.signal.values == {f"upstream.{key}": text for key, text in self.RUN.items()}
        assert matches(rule({"upstream": {"model_name": "features", "event": "succeeded"}}), parsed.signal)
        assert not matches(rule({"upstream": {"model_name": "features", "event": "promoted"}}), parsed.signal)
        assert not matches(rule({"upstream": {"model_name": "feature", "event": "succeeded"}}), parsed.signal)

    @pytest.mark.parametrize("state", ["failed", "cancelled", "rejected", "expired"])
    def test_a_run_that_ended_otherwise_is_only_an_end(self, state: str) -> None:
        parsed = parse_notice(message(notice(f"trainmaster.run.{state}.v1", state=state, **self.RUN)))
        assert parsed == ParsedNotice(ended_run_id="features-1")

    @pytest.mark.parametrize("state", ["reserved", "waiting", "submitted", "running"])
    def test_a_run_on_its_way_is_passed_over(self, state: str) -> None:
        assert isinstance(
            parse_notice(message(notice(f"trainmaster.run.{state}.v1", state=state, **self.RUN))), Ignored
        )

    def test_a_promotion_is_a_signal(self) -> None:
        parsed = instance_of(
            ParsedNotice, parse_notice(message(notice("trainmaster.champion.promoted.v1", **self.RUN)))
        )
        assert matches(
            rule({"upstream": {"model_name": "features", "event": "promoted"}}), present(parsed.signal)
        )
        assert parsed.ended_run_id is None

    @pytest.mark.parametrize(
        "kind", ["trainmaster.champion.rolled_back.v1", "trainmaster.rule.quarantined.v1"]
    )
    def test_other_notices_fire_nothing(self, kind: str) -> None:
        assert isinstance(parse_notice(message(notice(kind))), Ignored)

    @pytest.mark.parametrize(
        "document",
        [
            b"x",
            {},
            notice("google.cloud.storage.object.v1.finalized"),
            notice("trainmaster.run.succeeded.v1", state="done", run_id="r"),
            *(notice("trainmaster.run.x.v1", state=state, run_id="r") for state in NO_STATES),
            notice("trainmaster.run.succeeded.v1", state="succeeded"),
            notice("trainmaster.champion.promoted.v1"),
            {"id": 5, "type": "trainmaster.run.succeeded.v1"},
        ],
    )
    def test_what_is_no_notice_of_ours_is_malformed(self, document: Any) -> None:
        with pytest.raises(EventMalformed):
            parse_notice(message(document))


def test_a_manual_call_fires_the_rule_it_names_alone() -> None:
    one = rule({"manual": {}})
    assert matches(one, ordered("o1", "watch", NOON))
    assert not matches(one, ordered("o1", "watch2", NOON))
    assert not matches(rule({"age": {"older_than_s": 60}}), ordered("o1", "watch", NOON))


@given(text=st.text(max_size=1200))
def test_free_text_becomes_one_line_that_fills_a_place(text: str) -> None:
    line = one_line(text)
    assert not unfit(line)
    assert len(line) <= SUMMARY_MAX_CHARS
