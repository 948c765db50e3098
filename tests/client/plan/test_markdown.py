"""A plan as GitHub's Markdown: the difference to the last run, data that renders as nothing else, and a bounded length."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import markdown_it
import pytest

from tests.client.mirrored import launch, mirror
from tests.client.served import Served
from tests.contract.retraining import SMALL
from tests.contract.world import World, request_rules_with
from tests.core.admission_cases import PRICES
from tests.narrowing import present
from trainmaster.client.plan.markdown import plan_page, refusal_page
from trainmaster.client.plan.plan import Plan, last_run, plan_with_ledger
from trainmaster.client.submission.examination import examination_of
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import Terms

GITHUB_MAX_CHARS = 65_536
"""Of the body of a comment."""
HOSTILE = "@octocat </code><img src=x> ``` `` | #1 https://example.com\n# heading"


def page(world: World, served: Served, changes: Mapping[str, Any], **planned: Any) -> str:
    """The page of a request that would be uploaded now; `planned` changes fields of its plan."""
    mirror(world, served)
    source = RequestSource(file="next.json", content=json.dumps({**SMALL, **changes}).encode())
    context = served.clients.context
    found = examination_of(
        source, Terms(context=context, rules=world.request_rules, prices=PRICES, source="a policy")
    )
    now = world.clock.now() + timedelta(seconds=1)
    plan: Plan = replace(present(plan_with_ledger(served.clients, found, now=now)), **planned)
    return plan_page(plan, last_run(served.clients, found), now)


def test_the_page_says_what_it_costs_whether_it_waits_and_what_differs_from_the_last_run(
    served: Served,
) -> None:
    world = World(request_rules_with())
    launch(world, "older", args=["--epochs=1"])
    run_id = launch(world, "newer", args=["--epochs=3", "--fast"])
    shown = page(world, served, {"args": ["--epochs=5"], "priority": 60})
    plan, last, difference = shown.split("\n### ")
    assert "would:         start at once, with the request itself, if Vertex AI has room\n" in plan
    assert ", at most 43.20 USD; prices of " in plan
    assert f"run:           {run_id}\nstate:         submitted " in last
    changed = [line for line in difference.splitlines() if re.match(r"[+-] ?[-p]", line)]
    assert [line.replace(" ", "") for line in changed[1:]] == ["----epochs=3", "----fast", "+---epochs=5", "+priority:60"]  # fmt: skip


def test_the_same_request_differs_in_nothing_and_a_new_model_has_no_run_before(served: Served) -> None:
    world = World(request_rules_with())
    launch(world, "next")
    assert "\nThe request is the same.\n" in page(world, served, {})
    other = page(world, served, {"model_name": "new"})
    assert "The last run" not in other


def rendered(page: str) -> list[Any]:
    """The page's tokens in CommonMark, those inside of lines too."""
    tokens = markdown_it.MarkdownIt("commonmark", {"html": True}).parse(page)
    return [each for token in tokens for each in (token, *(token.children or ()))]


@pytest.mark.parametrize("is_refused", [False, True])
def test_data_stands_in_code_where_it_is_text_alone(served: Served, *, is_refused: bool) -> None:
    world = World(request_rules_with())
    launch(world, "last", labels={"a": "b"})
    planned = {"warnings": (HOSTILE, "`"), "request": {"model_name": HOSTILE, "note": HOSTILE}}
    shown = refusal_page(HOSTILE) if is_refused else page(world, served, {}, **planned)
    found = rendered(shown)
    kinds = {token.type for token in found}
    assert not kinds & {"html_inline", "html_block", "link_open", "image"}
    assert {token.tag for token in found if token.type == "heading_open"} == {"h3"}
    assert {token.type for token in found if "octocat" in token.content} == {"fence"}


def test_a_page_is_never_longer_than_a_comment_may_be(served: Served) -> None:
    world = World(request_rules_with())
    launch(world, "last")
    many = {f"key{number}": "ü" * 400 for number in range(2000)}
    shown = page(world, served, {}, warnings=tuple(many.values()), request={"model_name": "m", **many})
    assert len(shown.encode()) < GITHUB_MAX_CHARS
    assert "more lines" in shown
    assert shown.endswith("\n```\n")
    assert len(refusal_page("\n".join(many.values())).encode()) < GITHUB_MAX_CHARS
