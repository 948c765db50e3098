"""The refusal of a used key says in what the requests differ, without their values."""

import pytest

from trainmaster.client.submission.edits import differences

MANY = {"env": {f"V{number}": "1" for number in range(8)}}
ARCHIVES = [{"script": {"file": "train.py", "archive": f"gs://b/{name}.tar.gz"}} for name in "ab"]
FOLDER = "The folder of its script differs. To leave a file out of what is sent, name it in a .gitignore."


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"args": ["--token=1", "--b"], "env": {"A": "1"}},
            {"args": ["--token=2", "--b"], "labels": {"x": "y"}},
            "It differs in $.args[0], $.labels, $.env.",
        ),
        ({"env": {}}, MANY, "It differs in $.env.V0, $.env.V1, $.env.V2, $.env.V3, $.env.V4, … (8 in all)."),
        (*ARCHIVES, FOLDER),
        (ARCHIVES[0], {**ARCHIVES[1], "args": ["--a"]}, f"It differs in $.args. {FOLDER}"),
    ],
)
def test_the_places_that_differ_are_named(
    before: dict[str, object], after: dict[str, object], said: str
) -> None:
    assert differences(before, after) == said
