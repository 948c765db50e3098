"""Warnings about sound rules, at their places in the file."""

from typing import Any

import pytest

from tests.core.retraining_cases import rule
from trainmaster.client.submission.rule_doubts import cron_doubts, rule_doubts

WATCHED = {"objects": "gs://data-1/sales/**"}


def warnings(placeholders: str, *, when: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    watching = {"new_data": {**WATCHED, **(when or {})}}
    request = {"env": {"DATA": placeholders}}
    found = rule_doubts(rule({"manual": {}}, watching, request=request, **more))
    return {fault.path: fault.problem for fault in found}


@pytest.mark.parametrize("name", ["newest_uri", "newest_dir_uri"])
def test_a_request_that_names_one_of_several_folders_is_warned_of(name: str) -> None:
    assert warnings(f"${{data.{name}:-}} of ${{data.count}}") == {
        "$.when[1].new_data": f"a firing may take objects of several folders, and of these ${{data.{name}}} names one"
    }


@pytest.mark.parametrize("name", ["manifest_uri", "dirs", "since"])
def test_a_request_that_knows_all_of_them_is_not(name: str) -> None:
    assert warnings(f"${{data.newest_uri:-}} ${{data.{name}:-}}") == {}


def test_a_firing_for_one_folder_is_not() -> None:
    assert warnings("${data.newest_dir_uri:-}", when={"each": "folder"}) == {}
    assert warnings("${data.watermark:-}") == {}


def test_folders_whose_runs_would_end_each_other_are_warned_of() -> None:
    found = warnings("${data.dirs:-}", when={"each": "folder"}, while_running="replace")
    assert found == {
        "$.when[1].new_data": "with while_running: replace, the firing for a folder ends the run for the folder before"
    }


@pytest.mark.parametrize(
    ("cron", "says"),
    [
        ("0 3 1-7 * MON", "for the first MON of a month alone, write '0 3 * * MON#1'"),
        ("0 3 15-21 * 2", "for the third 2 of a month alone, write '0 3 * * 2#3'"),
        ("0 3 1,15 * 5", "write '0 3 * * MON#1'"),
        ("*/90 * * * *", "write 0, if that is meant"),
        ("0 */48 * * *", "write 0, if that is meant"),
    ],
)
def test_a_sound_expression_that_may_mean_something_else_is_doubted(cron: str, says: str) -> None:
    ((_, repair),) = cron_doubts(cron)
    assert says in repair


@pytest.mark.parametrize(
    "cron", ["0 3 * * 1", "@daily", "0 3 1 * ?", "0 3 */2 * MON", "*/15 * * * *", "0 3 L * *"]
)
def test_a_plain_expression_is_not_doubted(cron: str) -> None:
    assert list(cron_doubts(cron)) == []


@pytest.mark.parametrize(
    ("blackout", "says"),
    [
        ([{"cron": "0 0 * * *", "for_s": 86_400}], ["without a gap"]),
        (
            [{"cron": "0 0 * * *", "for_s": 43_200}, {"cron": "0 12 * * *", "for_s": 43_200}],
            ["without a gap"],
        ),
        ([{"cron": "0 0 * * *", "for_s": 86_340}], []),
        ([{"cron": "0 0 1-7 * MON", "for_s": 60}], ["each of these days of the week"]),
        ([{"from": "2026-12-24T00:00:00Z", "until": "2027-01-02T00:00:00Z"}], []),
    ],
)
def test_windows_that_may_not_be_meant_are_doubted(blackout: list[dict[str, Any]], says: list[str]) -> None:
    doubts = list(rule_doubts(rule({"manual": {}}, blackout=blackout)))
    assert all(each.path in ("$.blackout", "$.blackout[0].cron") for each in doubts)
    assert all(text in each.problem for text, each in zip(says, doubts, strict=True))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("orders/2026-??/*", "?"),
        ("orders/[0-9]*", "["),
        ("orders/{a,b}/**", "{"),
        (r"orders/\d+", "\\"),
        ("orders/*.csv", None),
        ("orders/part.*", None),
        ("**", None),
    ],
)
def test_a_pattern_of_another_language_is_doubted(pattern: str, found: str | None) -> None:
    doubts = list(
        rule_doubts(rule({"all": [{"new_data": {"objects": f"gs://data-1/{pattern}"}}, {"manual": {}}]}))
    )
    assert [each.problem.partition(" ")[0] for each in doubts] == ([] if found is None else [found])
    assert all(each.path == "$.when[0].all[0].new_data.objects" for each in doubts)
