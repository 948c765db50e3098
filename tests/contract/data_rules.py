"""Rules for new data whose runs get what a firing names as variables."""

import json
from collections.abc import Mapping
from typing import Any

from tests.contract.retraining import DATA, SMALL, RuleWorld, rule
from tests.contract.world import LEDGER
from tests.narrowing import present
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.sizes import MIB

URI = f"gs://{DATA}"
WATCHED: dict[str, Any] = {"objects": f"{URI}/**", "quiet_s": 60, "max_wait_s": 600}
NEWEST = {
    "COUNT": "${data.count}",
    "NEWEST": "${data.newest_uri:-none}",
    "DIR": "${data.newest_dir_uri:-none}",
    "WATERMARK": "${data.watermark:-none}",
}
ALL = {**NEWEST, "DIRS": "${data.dirs:-none}", "SINCE": "${data.since:-never}"}
MANIFEST = {**ALL, "MANIFEST": "${data.manifest_uri:-none}"}


def watching(env: Mapping[str, str] = ALL, *others: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A rule for new data, whose runs get these variables."""
    of_rule = {key: more.pop(key) for key in ("while_running", "cooldown_s") if key in more}
    return rule({"new_data": {**WATCHED, **more}}, *others, request={**SMALL, "env": dict(env)}, **of_rule)


def env(world: RuleWorld, number: int = -1) -> dict[str, str]:
    """The variables of the nth run."""
    document: Any = present(world.records()[number].request).document
    return dict(document["env"])


def manifest(world: RuleWorld, number: int = -1) -> list[str]:
    """The objects of the nth run, without the bucket."""
    lines = manifest_lines(world, env(world, number)["MANIFEST"])
    return [line["uri"].removeprefix(f"{URI}/") for line in lines]


def manifest_lines(world: RuleWorld, uri: str) -> list[dict[str, Any]]:
    bucket, name = split_object_uri(uri)
    assert (bucket, name.partition("/")[0]) == (LEDGER, "manifests")
    return [json.loads(line) for line in world.objects.read(LEDGER, name, max_bytes=MIB).content.splitlines()]


def fire_all(world: RuleWorld) -> int:
    """Ticks until nothing more fires; how many runs there are."""
    for _ in range(8):
        before = len(world.records())
        world.tick_after(61)
        if len(world.records()) > before:
            world.finish(before)
    return len(world.records())
