"""The name of a set of slots leads back to the limit of the policy that makes it."""

import pytest

from tests.contract.world import request_rules_with
from trainmaster.orchestrator.core.admission.queue import jobs_of_set, limits_of
from trainmaster.orchestrator.core.policy.admission import Admission, Limit

LABELS = {"team": "blue", "Odd.Key": "An.Odd.Value"}


@pytest.mark.parametrize(
    "limit",
    [
        Limit(jobs=3),
        Limit(jobs=3, per_model=True),
        Limit(jobs=3, per_label="team"),
        Limit(jobs=3, per_label="Odd.Key"),
        Limit(jobs=3, model="cassava"),
        Limit(jobs=3, model="cas*"),
        Limit(jobs=3, model="*-large"),
        Limit(jobs=3, labels={"team": "blue"}),
        Limit(jobs=3, labels=LABELS),
    ],
)
def test_every_set_of_a_limit_has_its_number_of_jobs(limit: Limit) -> None:
    admission = Admission(limits=(limit,))
    model = "cassava-large" if limit.model == "*-large" else "cassava"
    policy = request_rules_with(admission=admission).policy
    (only,) = limits_of(policy, model, LABELS)
    assert jobs_of_set(admission, only.name) == 3


def test_of_several_limits_for_the_same_runs_the_smaller_counts() -> None:
    limits = (Limit(jobs=3, per_model=True), Limit(jobs=2, model="cassava"))
    assert jobs_of_set(Admission(limits=limits), "model.cassava") == 2
    assert jobs_of_set(Admission(limits=limits), "model.flowers") == 3


@pytest.mark.parametrize("name", ["all", "models.cas-x", "label.team.blue", "label.team.blue.owner.ann"])
def test_a_set_that_no_limit_makes_any_more_has_no_number(name: str) -> None:
    admission = Admission(limits=(Limit(jobs=1, per_model=True), Limit(jobs=1, per_label="owner")))
    assert jobs_of_set(admission, name) is None
