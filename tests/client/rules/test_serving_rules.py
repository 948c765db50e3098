"""Which endpoint serves a model, and how its traffic is shared out."""

from datetime import UTC, datetime

from google.cloud.aiplatform_v1.types import DeployModelOperationMetadata
from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.client.rules.serving import default_endpoint, failure_of_last_deployment, split_with


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 99)), st.integers(1, 100))
def test_a_version_gets_what_was_asked_and_the_others_the_rest(before: dict[str, int], share: int) -> None:
    after = split_with({**before, "e": 1}, "a", share)
    assert (after["a"], sum(after.values()), min(after.values()) > 0) == (share, 100, True)
    assert split_with({"b": 50, "c": 50}, "a", 99) == {"b": 1, "a": 99}


def test_the_newest_deployment_says_why_it_failed() -> None:
    def operation(minute: int, why: str = "") -> operations_pb2.Operation:
        details = DeployModelOperationMetadata()
        details.generic_metadata.create_time = datetime(2026, 3, 1, 12, minute, tzinfo=UTC)
        found = operations_pb2.Operation(error={"message": why})
        found.metadata.Pack(DeployModelOperationMetadata.pb(details))
        return found

    assert failure_of_last_deployment(failed := [operation(2, "no room"), operation(1)]) == "no room"
    assert failure_of_last_deployment([operation(3), *failed]) == ""


@given(st.sets(st.from_regex(r"[a-z][ab_-]{0,61}[ab]", fullmatch=True), min_size=2))
def test_no_two_models_have_the_same_default_endpoint(models: set[str]) -> None:
    endpoints = [each for each in map(default_endpoint, models) if len(each) <= 63 and "_" not in each]
    assert len(set(endpoints)) == len(models)
    assert default_endpoint("a-b") == "a-b"
