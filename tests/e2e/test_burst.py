"""A new instance's first events arrive at once: valid, faulty and already overwritten."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .project import ENDED, request, running_project
from .proxied import quick_topology

pytestmark = pytest.mark.slow

SOUND, FAULTY, WRITINGS = 8, 8, 4


def test_a_burst_on_a_new_instance_loses_and_mixes_up_nothing(tmp_path: Path) -> None:
    topology = quick_topology(tmp_path, timeout_s=60)
    with running_project(tmp_path / "state", "--topology", str(topology), project="e2e-burst") as project:
        sound = request(project.id)
        for number in range(SOUND):
            project.upload(f"requests/sound-{number}.yaml", sound)
            project.upload(f"requests/faulty-{number}.yaml", "[" * (50 * number))
        for _ in range(WRITINGS):
            project.upload("requests/written-over.yaml", sound)
        expected = SOUND + FAULTY + WRITINGS

        def all_ended() -> list[dict[str, Any]] | None:
            records = list(project.records().values())
            ended = [record for record in records if record["state"] in ENDED]
            return ended if len(ended) == expected else None

        records = project.eventually(all_ended, f"{expected} records have ended")
        by_drop = Counter(
            (record["source"]["object_name"].partition("-")[0], record["state"]) for record in records
        )
        assert by_drop["requests/sound", "succeeded"] == SOUND
        assert by_drop["requests/faulty", "rejected"] == FAULTY
        assert by_drop["requests/written", "succeeded"] >= 1  # the last writing is a request like any other
