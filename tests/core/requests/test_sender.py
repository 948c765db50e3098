"""Who sent a request, and from which commit: what metadata that anyone may write can say."""

import pytest

from trainmaster.orchestrator.core.requests.incoming import commit_from, forced_text, sender_from
from trainmaster.orchestrator.core.runs.sender import Commit, Sender, Surety

COMMIT = "04889a2c9d3b6c1f0e7a5d4c3b2a190817263544"


@pytest.mark.parametrize(
    ("metadata", "sender"),
    [
        ({}, None),
        ({"trainmaster-by": "anna"}, Sender(name="anna", by=Surety.CLAIM)),
        (
            {"trainmaster-account": "a@example.com", "trainmaster-by": "anna"},
            Sender(name="a@example.com", by=Surety.CREDENTIALS),
        ),
        ({"trainmaster-by": "  \n"}, None),
        ({"trainmaster-by": ["anna"]}, None),
        ({"trainmaster-by": "\x1b[31ma\nb"}, Sender(name="[31ma b", by=Surety.CLAIM)),
        ({"trainmaster-by": "a" * 5000}, Sender(name="a" * 100, by=Surety.CLAIM)),
    ],
)
def test_a_sender_is_one_printable_line_and_says_how_sure_it_is(
    metadata: dict[str, object], sender: Sender | None
) -> None:
    assert sender_from(metadata) == sender


@pytest.mark.parametrize(
    ("metadata", "commit"),
    [
        ({"trainmaster-commit": COMMIT}, Commit(id=COMMIT)),
        (
            {"trainmaster-commit": COMMIT, "trainmaster-branch": "main", "trainmaster-dirty": "true"},
            Commit(id=COMMIT, branch="main", dirty=True),
        ),
        (
            {"trainmaster-commit": "04889a2", "trainmaster-dirty": "false"},
            Commit(id="04889a2", dirty=False),
        ),
        ({"trainmaster-commit": "04889a2", "trainmaster-dirty": "perhaps"}, Commit(id="04889a2")),
        ({"trainmaster-commit": "HEAD", "trainmaster-branch": "main"}, None),
        ({"trainmaster-commit": f"{COMMIT}\n<b>"}, None),
        ({"trainmaster-branch": "main"}, None),
    ],
)
def test_only_the_id_of_a_commit_is_a_commit(metadata: dict[str, object], commit: Commit | None) -> None:
    assert commit_from(metadata) == commit


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, None),
        ({"trainmaster-forced": " a\nb" + "c" * 999}, "a b" + "c" * 296),
        ({"trainmaster-forced": 1}, None),
    ],
)
def test_what_the_sender_passed_over_is_one_line_of_bounded_length(
    metadata: dict[str, object], said: str | None
) -> None:
    assert forced_text(metadata) == said
