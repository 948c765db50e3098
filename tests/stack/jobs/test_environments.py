"""Variables of a job that only the local stack reads."""

import json

from .conftest import Stack, container

LEGACY = [{"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "ai_platform"}]


def test_ai_platforms_environment_is_set_where_it_is_asked_for_also_for_one_replica(stack: Stack) -> None:
    job = stack.submit(container("tell", env=LEGACY))
    stack.ended(job.name)
    for name in ("TF_CONFIG", "CLUSTER_SPEC"):
        assert list(json.loads(stack.told(job.name)["environ"][name])["cluster"]) == ["master"]


def test_a_wrong_value_fails_the_job_with_what_is_allowed(stack: Stack) -> None:
    wrong = [{"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "legacy"}]
    unknown = container(image="gcr.io/p/unknown:1")
    ended = stack.ended(stack.submit(unknown, container("tell", env=wrong), unknown).name)
    assert ended.state.name == "JOB_STATE_FAILED"
    image, variable = ended.error.message.splitlines()
    assert image.startswith("Failed to read the container uri [gcr.io/p/unknown:1]. ")
    assert variable == (
        "Worker pool 1 sets TRAINMASTER_REPLICA_ENVIRONMENT to 'legacy'; it is one of vertex, ai_platform."
    )
