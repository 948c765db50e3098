"""The requests that users send: valid ones for several models, and invalid ones."""

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.contract.world import ELSEWHERE

IMAGE = "us-docker.pkg.dev/my-project/repo/trainer"
CHAMPION = {"metric": "accuracy", "goal": "maximize"}
MODELS = 40
PRIORITIES = (50, 50, 20, 80)
TWO_GPUS = {"type": "NVIDIA_TESLA_T4", "count": 2}
START_WITHIN_S = 120
MODELS_WITH_CHAMPION = 4
"""The number of models with a champion."""


@dataclass(frozen=True, kw_only=True)
class SampleRequest:
    """A request's content, and whether it must be accepted."""

    content: bytes
    valid: bool


def _document(number: int) -> dict[str, Any]:
    document: dict[str, Any] = {
        "model_name": f"model-{number}",
        "image": IMAGE,
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        "priority": PRIORITIES[number % len(PRIORITIES)],
    }
    if number % 5 == 1:
        document["cluster"] = {"chief": {"machine": "n1-standard-4", "accelerator": TWO_GPUS}}
        document["scheduling"] = {"start_within_s": START_WITHIN_S}
        document["fallbacks"] = [{"cluster": {"chief": {"accelerator": {"count": 1}}}}, {"region": ELSEWHERE}]
    if number % 3 == 0:
        on = ["infrastructure", "out_of_memory"] if number % 2 else ["infrastructure"]
        document["scheduling"] = {"retries": 1 + number % 2, "retry_on": on}
    if number % 5 == 2:
        document["labels"] = {"team": "blue"}
    return {**document, "champion": CHAMPION} if number < MODELS_WITH_CHAMPION else document


def _content(document: object) -> bytes:
    return json.dumps(document).encode()


VALID = tuple(SampleRequest(content=_content(_document(number)), valid=True) for number in range(MODELS))
INVALID = tuple(
    SampleRequest(content=content, valid=False)
    for content in (
        b"{",
        b"[]",
        _content({**_document(9), "image": "evil.example.com/miner"}),
        _content({**_document(9), "imgae": IMAGE}),
        _content({"model_name": "model-9"}),
        b'{"model_name": "x", "model_name": "y"}',
    )
)


def draw_request(random: Random, invalid: float) -> SampleRequest:
    return random.choice(INVALID if random.random() < invalid else VALID)
