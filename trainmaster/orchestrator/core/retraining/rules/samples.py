"""Values to check a rule's request with when it is dropped: what each of its conditions would fill in."""

from collections.abc import Mapping
from typing import assert_never

from trainmaster.orchestrator.core.retraining.rules.condition import (
    Age,
    Alert,
    Condition,
    Manual,
    NewData,
    NewImage,
    Schedule,
    Upstream,
)

_TIME = "2026-01-31T12:34:56.000000Z"
_RUN_ID = "sample-20260131t123456-0123456789"
ALWAYS = frozenset({"rule.id", "firing.id", "firing.time", "firing.condition"})
"""These have a value in every firing."""
PERHAPS = frozenset({"champion.model_uri", "champion.run_id", "champion.value"})
"""These have a value in any firing, once there is a champion."""
DATA = frozenset({"data.count", "data.bytes", "data.watermark", "data.newest_uri", "data.newest_dir_uri"})
"""These may have a value in every firing of a rule that waits for new data."""
IMAGE = frozenset({"image.uri", "image.digest", "image.tag"})
ALERT = frozenset({"alert.policy", "alert.incident_id", "alert.summary"})
UPSTREAM = frozenset({"upstream.model_name", "upstream.run_id", "upstream.model_uri"})


def possible(condition: Condition) -> frozenset[str]:
    """The names that only a firing by this condition gives a value."""
    match condition:
        case NewImage():
            return IMAGE
        case Alert():
            return ALERT
        case Upstream():
            return UPSTREAM
        case NewData() | Schedule() | Age() | Manual():
            return frozenset()
        case _:
            assert_never(condition)


def sample_values(
    condition: Condition, *, rule_id: str, models_bucket: str, data: str | None
) -> Mapping[str, str]:
    """Values as a firing by this condition may have them; `data` is a pattern that the rule watches, if any."""
    watched = condition.pattern if isinstance(condition, NewData) else data
    return {
        "rule.id": rule_id,
        "firing.id": _RUN_ID,
        "firing.time": _TIME,
        "firing.condition": condition.kind.value,
        "champion.model_uri": f"gs://{models_bucket}/sample/{_RUN_ID}/model/",
        "champion.run_id": _RUN_ID,
        "champion.value": "0.5",
        **({} if watched is None else _of_data(watched)),
        **_own(condition, models_bucket),
    }


def _of_data(pattern: str) -> dict[str, str]:
    uri = pattern.replace("**", "sample").replace("*", "sample")
    return {
        "data.count": "100",
        "data.bytes": "1000000",
        "data.watermark": _TIME,
        "data.newest_uri": uri,
        "data.newest_dir_uri": uri.rpartition("/")[0] + "/",
    }


def _own(condition: Condition, models_bucket: str) -> dict[str, str]:
    match condition:
        case NewImage():
            digest = f"sha256:{'0123456789abcdef' * 4}"
            return {
                "image.uri": f"{condition.repository}@{digest}",
                "image.digest": digest,
                "image.tag": condition.tag.replace("*", "sample"),
            }
        case Alert():
            return {
                "alert.policy": (condition.policy or "sample policy").replace("*", "sample"),
                "alert.incident_id": "0.sample",
                "alert.summary": "a sample of a summary",
            }
        case Upstream():
            return {
                "upstream.model_name": condition.model_name,
                "upstream.run_id": _RUN_ID,
                "upstream.model_uri": f"gs://{models_bucket}/{condition.model_name}/{_RUN_ID}/model/",
            }
        case _:
            return {}
