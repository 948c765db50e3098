"""A well-formed request that the service would refuse is refused at the drop, at its place in the file."""

from typing import Any

import pytest

from tests.core.roles import ONE, OTHER, TUNING, accepted, cluster, request, told

NETWORK = "projects/123/global/networks/training"
CONTEXTS = "projects/my-project/locations/us-central1/metadataStores/default/contexts"
LEARNING_RATE: dict[str, Any] = {"type": "double", "min": 0.1, "max": 0.2}
SAFE = {"threshold": 0.5}


def tuned(**changes: Any) -> dict[str, Any]:
    return {"tuning": {**TUNING, **changes}}


def chosen(*conditions: tuple[list[str], str]) -> dict[str, Any]:
    """A parameter with one child for each of the conditions."""
    return {
        "type": "categorical",
        "values": ["adam", "sgd"],
        "conditional": [{"when": when, "parameters": {name: LEARNING_RATE}} for when, name in conditions],
    }


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (
            tuned(metrics=[{"id": "val accuracy", "goal": "maximize"}]),
            "$.tuning.metrics[0].id",
            "without white space; write '_' for each space",
        ),
        (
            tuned(metrics=[{"id": "loss", "goal": "minimize", "safety": SAFE}]),
            "$.tuning.metrics",
            "add the metric to optimize",
        ),
        (
            tuned(early_stopping={"rule": "convex", "learning_rate_parameter": "learning_rat"}),
            "$.tuning.early_stopping.learning_rate_parameter",
            "did you mean 'learning_rate'?",
        ),
        (
            tuned(parameters={"rate": LEARNING_RATE, "by": chosen((["adam"], "rate"))}),
            "$.tuning.parameters.by.conditional[0].parameters.rate",
            "give each a unique name",
        ),
        (
            tuned(parameters={"by": chosen((["adam"], "rate"), (["sgd", "adam"], "rate"))}),
            "$.tuning.parameters.by.conditional[1].parameters.rate",
            "appears twice",
        ),
        ({"network": "projects/my-project/global/networks/n"}, "$.network", "gcloud projects describe"),
        ({"network": "projects/123/global/networks/N_1"}, "$.network", "networks/NAME"),
        ({"network": NETWORK, "reserved_ip_ranges": ["A b"]}, "$.reserved_ip_ranges[0]", "lower-case"),
        ({"persistent_resource": "team-"}, "$.persistent_resource", "not ending with '-'"),
        ({"experiment": f"{CONTEXTS}/e", "experiment_run": "a b"}, "$.experiment_run", "EXPERIMENT-RUN"),
        ({"scheduling": {"timeout_s": 10**18}}, "$.scheduling.timeout_s", "too large"),
        ({"image": "us-central1-docker.pkg.dev/my-project/Other/Image:v1"}, "$.image", "lower-case letters"),
        ({"image": f"{OTHER}:v1:v2"}, "$.image", "with :tag"),
        ({"env": {"A": "\0"}}, "$.env.A", "a character that is not allowed"),
        (
            {"args": ["x" * 60_000], "cluster": cluster(workers={**ONE, "args": ["y" * 60_000]})},
            "$.args",
            "120000 characters in the commands and arguments of all roles",
        ),
        ({"command": ["x" * 100_001]}, "$.command", "at most 100000 characters"),
    ],
)
def test_limits_of_the_service_hold_at_the_drop(changes: dict[str, Any], path: str, words: str) -> None:
    assert words in str(told(request(**changes))[path])


def test_a_parameter_may_have_a_specification_for_each_value_of_its_parent() -> None:
    accepted(request(**tuned(parameters={"by": chosen((["adam"], "rate"), (["sgd"], "rate"))})))


def test_a_run_of_an_experiment_is_submitted_by_its_full_name() -> None:
    by_id = accepted(request(experiment=f"{CONTEXTS}/nightly", experiment_run="7")).spec
    by_name = accepted(request(experiment=f"{CONTEXTS}/nightly", experiment_run=f"{CONTEXTS}/nightly-7")).spec
    assert by_id == by_name
    assert by_id.settings["experiment_run"] == f"{CONTEXTS}/nightly-7"
