"""A plan says what the service then does, from what the flows left in the ledger of a real storage server."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click
import markdown_it
import pytest

from tests.cli.screens import assert_screen
from tests.client.mirrored import launch, mirror
from tests.client.served import Served
from tests.contract.retraining import SMALL
from tests.contract.rooms import GPU, Room
from tests.contract.world import World, request_rules_with
from tests.core.admission_cases import PRICES
from tests.core.shipped import assert_valid
from tests.narrowing import present
from trainmaster.cli.table import fact_lines
from trainmaster.client.plan.facts import plan_facts
from trainmaster.client.plan.markdown import block, plan_page
from trainmaster.client.plan.plan import Plan, last_run, plan_with_ledger
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import Terms
from trainmaster.orchestrator.core.policy.admission import Admission, Caps, Limit

EMPTY: Mapping[str, Any] = {}
COMMENT_MAX_CHARS = 65_536
"""Of a comment on GitHub."""
HOSTILE = "@octocat </code><img src=x> ````` ``` | #1 https://example.com\n```\n# heading"


def world_with(*limits: Limit, caps: Caps | None = None) -> World:
    return World(request_rules_with(admission=Admission(limits=limits, caps=caps or Caps())))


def examined(world: World, served: Served, name: str, changes: Mapping[str, Any]) -> Examination:
    source = RequestSource(file=f"{name}.json", content=json.dumps({**SMALL, **changes}).encode())
    context, rules = served.clients.context, world.request_rules
    return examination_of(
        source, Terms(context=context, rules=rules, prices=PRICES, source="the policy of a test")
    )


def planned(
    world: World,
    served: Served,
    name: str = "next",
    *,
    key: str | None = None,
    changes: Mapping[str, Any] = EMPTY,
) -> Plan:
    """The plan of an upload that `launch` could make now; fits its schema."""
    mirror(world, served)
    now = world.clock.now() + timedelta(seconds=1)
    plan = present(plan_with_ledger(served.clients, examined(world, served, name, changes), key=key, now=now))
    assert_valid(plan.document, "plan.v1")
    return plan


def verdict(plan: Plan) -> tuple[str, int]:
    outlook = present(plan.outlook)
    return outlook.verdict, outlook.candidate


def test_a_run_with_nothing_in_its_way_starts(served: Served) -> None:
    world = world_with()
    assert verdict(planned(world, served)) == ("starts", 0)
    assert world.record(launch(world, "next")).state == "submitted"


def test_a_full_limit_makes_it_wait_behind_those_that_hold_its_slots(served: Served) -> None:
    world = world_with(Limit(jobs=1, per_model=True))
    first = launch(world, "first")
    plan = planned(world, served)
    assert verdict(plan) == ("waits", 0)
    assert present(plan.outlook).behind == (first,)
    assert [(limit.jobs, limit.holders) for limit in present(plan.limits)] == [(1, (first,))]
    assert present(world.record(launch(world, "next")).admission.waiting).limit is not None
    assert verdict(planned(world, served, changes={"model_name": "another"})) == ("starts", 0)


def test_it_waits_behind_runs_for_the_same_machines_and_starts_on_a_fallback(served: Served) -> None:
    world = world_with()
    room = Room(world, places=0)
    first = launch(world, "first", **GPU)
    plan = planned(world, served, changes=GPU)
    assert (verdict(plan), present(plan.outlook).behind) == (("waits", 0), (first,))
    chief = {"machine": "n1-standard-4", "accelerator": None}
    fallback: dict[str, Any] = {"fallbacks": [{"cluster": {"chief": chief}}]}
    assert verdict(planned(world, served, changes=GPU | fallback)) == ("starts", 1)
    room.places = None
    record = world.record(launch(world, "next", **GPU, **fallback))
    assert (record.state, record.submission.candidate) == ("submitted", 1)
    assert verdict(planned(world, served, changes={"priority": 90, **GPU})) == ("starts", 0), "it goes first"


def test_a_cap_that_is_reached_would_refuse_it(served: Served) -> None:
    world = world_with(caps=Caps(runs_per_hour=1))
    assert verdict(planned(world, served)) == ("starts", 0)
    launch(world, "first")
    plan = planned(world, served)
    assert verdict(plan) == ("refused", 0)
    assert world.record(launch(world, "next")).state == "rejected"


def test_a_file_that_was_dropped_before_and_a_key_that_was_used_are_said(served: Served) -> None:
    world = world_with()
    run_id = launch(world, "again")
    (seen,) = planned(world, served, "again").seen
    assert (seen.name, seen.run_id, seen.same_request, seen.starts_again) == (
        "requests/again.json", run_id, True, True,
    )  # fmt: skip
    (seen,) = planned(world, served, "again", changes={"args": ["--other"]}).seen
    assert not seen.same_request
    assert planned(world, served, "new").seen == ()
    assert planned(world, served, "again", key="unused").seen == ()


def test_a_plan_writes_nothing(served: Served) -> None:
    world = world_with()
    launch(world, "first")
    mirror(world, served)
    context, storage = served.clients.context, served.clients.storage

    def objects() -> list[str]:
        buckets = (context.inbox_bucket, context.ledger_bucket)
        return [each.name for name in buckets for each in storage.list_blobs(name)]

    before = objects()
    planned(world, served)
    assert objects() == before


@pytest.mark.parametrize("width", [80, 120])
def test_the_screen_of_a_plan(served: Served, width: int) -> None:
    world = world_with(Limit(jobs=4))
    Room(world, places=0)
    launch(world, "first", **GPU)
    europe: dict[str, Any] = {"fallbacks": [{"region": "europe-west4"}]}
    plan = planned(world, served, "first", changes={"model_name": "flowers", **GPU, **europe})
    lines = [click.unstyle(line) for line in fact_lines(plan_facts(plan), width=width)]
    assert_screen(f"plan.{width}", "".join(f"{line}\n" for line in lines))
    assert max(map(len, lines)) <= width


def test_a_matrix_is_planned_as_one(served: Served) -> None:
    matrix = {"matrix": {"seed": [1, 2, 3]}}
    plan = planned(world_with(caps=Caps(runs_per_hour=2)), served, changes=matrix)
    assert (plan.runs, plan.jobs[0].body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]) == (
        3,
        ["--seed=1"],
    )
    assert present(plan.outlook).verdict == "refused"
    cost = present(plan.jobs[0].estimate.at_most)
    assert f"all 3 runs of the matrix: at most {3 * cost:.2f} USD" in dict(plan_facts(plan))["job"]


def test_a_plan_counts_the_job_that_scores_the_model(served: Served) -> None:
    evaluate = {"image": SMALL["image"], "data": "gs://data-1/holdout.csv"}
    terms = {"champion": {"metric": "accuracy", "goal": "maximize", "evaluate": evaluate}}
    (alone,), (scored,) = (planned(World(), served, changes=each).jobs for each in ({}, terms))
    assert present(scored.estimate.at_most) > present(alone.estimate.at_most)


def page(world: World, served: Served, changes: Mapping[str, Any] = EMPTY, **fields: Any) -> str:
    """The plan as GitHub's Markdown, with other `fields`."""
    plan = replace(planned(world, served, changes=changes), **fields)
    return plan_page(
        plan, last_run(served.clients, examined(world, served, "next", changes)), world.clock.now()
    )


def test_a_page_compares_the_request_with_the_last_run_of_its_model(served: Served) -> None:
    world = world_with()
    launch(world, "older", args=["--epochs=1"])
    run_id = launch(world, "newer", args=["--epochs=3", "--fast"])
    plan, last, difference = page(world, served, {"args": ["--epochs=5"], "priority": 60}).split("\n### ")
    assert "would:         start at once, with the request itself, if Vertex AI has room\n" in plan
    assert ", at most 43.20 USD; prices of " in plan
    assert f"run:           {run_id}\nstate:         submitted " in last
    changed = re.findall(r"^[+-] *(?:- *--|priority).*", difference, re.MULTILINE)
    shown = ["----epochs=3", "----fast", "+---epochs=5", "+priority:60"]
    assert [line.replace(" ", "") for line in changed] == shown
    assert "\nThe request is the same.\n" in page(world, served, {"args": ["--epochs=3", "--fast"]})
    assert "The last run" not in page(world, served, {"model_name": "new"})


def test_data_is_text_in_the_code_of_a_page_whatever_it_contains(served: Served) -> None:
    world = world_with()
    launch(world, "last", labels={"a": "b"})
    shown = page(world, served, warnings=(HOSTILE, "`"), request={"model_name": HOSTILE})
    tokens = markdown_it.MarkdownIt("commonmark", {"html": True}).parse(shown + block("x", [HOSTILE]))
    found = [each for token in tokens for each in (token, *(token.children or ()))]
    assert {token.type for token in found} == {"heading_open", "heading_close", "inline", "text", "fence"}
    assert {token.tag for token in found if token.type == "heading_open"} == {"h3"}
    assert [token.type for token in found if "octocat" in token.content] == ["fence"] * 3


def test_a_page_is_never_longer_than_a_comment_may_be(served: Served) -> None:
    world = world_with()
    launch(world, "last")
    many = {f"key{number}": "ü" * 400 for number in range(2000)}
    shown = page(world, served, warnings=tuple(many.values()), request={"model_name": "m", **many})
    assert len(shown) < COMMENT_MAX_CHARS
    assert re.search(r"\n… [\d,]+ more lines\n```\n$", shown)
