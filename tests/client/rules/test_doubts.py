"""Warnings about sound rules, at their places in the file."""

from typing import Any

import pytest

from tests.core.retraining_cases import rule
from trainmaster.client.rules.doubts import rule_warnings

WATCHED = {"objects": "gs://data-1/sales/**"}


def warnings(placeholders: str, *, when: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    watching = {"new_data": {**WATCHED, **(when or {})}}
    request = {"env": {"DATA": placeholders}}
    found = rule_warnings(rule({"manual": {}}, watching, request=request, **more))
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
