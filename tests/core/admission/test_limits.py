"""The limits that a run falls under, the way back from a set's name to its limit, and the subject of a quota refusal."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.admission_cases import CHIEF, V100, candidates, policy
from tests.core.roles import T4
from trainmaster.orchestrator.core.admission.candidates import CLASS_MAX_CHARS, quota_class
from trainmaster.orchestrator.core.admission.queue import SlotSet, jobs_of_set, limits_of
from trainmaster.orchestrator.core.names import LABEL_MAX_CHARS
from trainmaster.orchestrator.core.policy.admission import Admission, Limit


def names(
    limits: list[dict[str, Any]], model: str = "cassava", labels: dict[str, str] | None = None
) -> dict[str, int]:
    found = limits_of(policy({"limits": limits}), model, labels or {})
    return {each.name: each.slots for each in found}


@pytest.mark.parametrize(
    ("limit", "name"),
    [
        ({}, "all"),
        ({"per": "model"}, "model.cassava"),
        ({"per": {"label": "team"}}, "label.team.blue"),
        ({"label": {"team": "blue"}}, "label.team.blue"),
        ({"label": {"tier": "two", "team": "blue"}}, "label.team.blue.tier.two"),
        ({"model": "cassava"}, "model.cassava"),
        ({"per": {"label": "owner"}}, None),
        ({"label": {"team": "red"}}, None),
        ({"label": {"team": "blue", "tier": "one"}}, None),
        ({"model": "iris*"}, None),
    ],
)
def test_a_run_needs_a_slot_of_every_limit_that_means_it(limit: dict[str, Any], name: str | None) -> None:
    limits = [{"jobs": 3, **limit}]
    found = names(limits, labels={"team": "blue", "tier": "two"})
    assert found == ({} if name is None else {name: 3})
    of_set = {each: jobs_of_set(policy({"limits": limits}).admission, each) for each in found}
    assert of_set == found, "the name leads back to the limit"


ODD = {"team": "blue", "Odd.Key": "An.Odd.Value"}


@pytest.mark.parametrize(
    "limit", [{"per": {"label": "Odd.Key"}}, {"label": ODD}, {"model": "cas*"}, {"model": "*ava"}]
)
def test_a_name_made_of_a_hash_leads_back_to_its_limit_too(limit: dict[str, Any]) -> None:
    limits = [{"jobs": 3, **limit}]
    (name,) = names(limits, labels=ODD)
    assert jobs_of_set(policy({"limits": limits}).admission, name) == 3


def test_models_that_match_a_pattern_share_its_slots() -> None:
    limits = [{"jobs": 2, "model": "cass*"}]
    assert names(limits, "cassava") == names(limits, "cassette")
    (name,) = names(limits)
    assert names([{"jobs": 2, "model": "cas*"}]).keys() != {name}


def test_of_two_limits_for_the_same_runs_the_smaller_holds_and_the_name_does_not_tell_the_number() -> None:
    assert names([{"jobs": 5}, {"jobs": 2}, {"jobs": 9}]) == {"all": 2}
    assert names([{"jobs": 5, "per": "model"}, {"jobs": 4, "model": "cassava"}]) == {"model.cassava": 4}


def test_limits_come_sorted_and_without_a_policy_or_limits_there_are_none() -> None:
    found = limits_of(policy({"limits": [{"jobs": 1, "per": "model"}, {"jobs": 9}]}), "m", {})
    assert found == (SlotSet(name="all", slots=9), SlotSet(name="model.m", slots=1))
    assert limits_of(None, "m", {}) == limits_of(policy(), "m", {}) == ()


UNLIMITED = policy()
LABELS = st.dictionaries(
    st.text("ab.-_X", min_size=1, max_size=3), st.text("ab.-_X/", max_size=3), min_size=1, max_size=2
)


@given(LABELS, LABELS)
def test_names_are_one_path_component_and_unique(one: dict[str, str], other: dict[str, str]) -> None:
    def name(labels: dict[str, str]) -> str:
        admission = Admission(limits=(Limit(jobs=1, labels=labels),))
        (only,) = limits_of(replace(UNLIMITED, admission=admission), "cassava", labels)
        return only.name

    first, second = name(one), name(other)
    assert re.fullmatch(r"[A-Za-z0-9._-]+", first)
    assert first not in (".", "..")
    assert (first == second) == (one == other)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "us-central1_n1_cpu"),
        ({"region": "europe-west4"}, "europe-west4_n1_cpu"),
        ({"scheduling": {"spot": True}}, "us-central1_n1_cpu_spot"),
        ({"scheduling": {"flex_start": True}}, "us-central1_n1_cpu_flex"),
        ({"cluster": {"chief": {**CHIEF, "accelerator": T4}}}, "us-central1_nvidia_tesla_t4"),
        (
            {"cluster": {"chief": CHIEF, "workers": {**CHIEF, "accelerator": T4, "count": 1}}},
            "us-central1_nvidia_tesla_t4",
        ),
        (
            {
                "cluster": {
                    "chief": {**CHIEF, "accelerator": V100},
                    "workers": {**CHIEF, "accelerator": T4, "count": 1},
                }
            },
            "us-central1_nvidia_tesla_t4_nvidia_tesla_v100",
        ),
        (
            {"cluster": {"chief": CHIEF, "workers": {"machine": "e2-standard-4", "count": 1}}},
            "us-central1_e2_cpu_n1_cpu",
        ),
        (
            {"cluster": {"chief": {"machine": "ct5lp-hightpu-4t", "tpu_topology": "2x2"}}},
            "us-central1_ct5lp_tpu",
        ),
    ],
)
def test_a_quota_class_is_region_scarcest_kind_and_terms(changes: dict[str, Any], name: str) -> None:
    (candidate,) = candidates(**changes)
    assert quota_class(candidate) == name


def test_a_long_quota_class_is_still_a_label_and_of_its_kinds_alone() -> None:
    def of(*kinds: str) -> str:
        pools = [{**CHIEF, "accelerator": {"type": kind, "count": 1}, "count": 1} for kind in kinds]
        roles = dict(zip(("chief", "workers", "parameter_servers", "evaluators"), pools, strict=False))
        (candidate,) = candidates(cluster=roles)
        return quota_class(candidate)

    long = of("NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100", "NVIDIA_TESLA_P100", "NVIDIA_A100_80GB")
    other = of("NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_P4")
    assert CLASS_MAX_CHARS == LABEL_MAX_CHARS
    assert len(long) <= CLASS_MAX_CHARS
    assert long != other
    assert re.fullmatch(r"[a-z][a-z0-9_-]*", long)


def test_of_several_limits_for_the_same_runs_the_smaller_counts() -> None:
    limits = (Limit(jobs=3, per_model=True), Limit(jobs=2, model="cassava"))
    assert jobs_of_set(Admission(limits=limits), "model.cassava") == 2
    assert jobs_of_set(Admission(limits=limits), "model.flowers") == 3


@pytest.mark.parametrize("name", ["all", "models.cas-x", "label.team.blue", "label.team.blue.owner.ann"])
def test_a_set_that_no_limit_makes_any_more_has_no_number(name: str) -> None:
    admission = Admission(limits=(Limit(jobs=1, per_model=True), Limit(jobs=1, per_label="owner")))
    assert jobs_of_set(admission, name) is None
