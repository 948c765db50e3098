"""What people read about the end of a trial, which the service calls INFEASIBLE for several reasons."""

import pytest

from trainmaster.orchestrator.core.completion.trial_ends import WORDS, trial_word
from trainmaster.orchestrator.core.runs.job import TrialState


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("The replica workerpool0-0 exited with a non-zero status of 1. To find out more", "failed"),
        ("Internal error occurred. To find out more", "failed"),
        ("CANCELED: the job ran longer than its timeout of 3600 s.", "failed"),
        ("CANCELED", "cancelled"),
        ("The trial's job was cancelled.", "cancelled"),
        ("The trial was cancelled because too many other trials failed.", "cancelled"),
        ("The trial ended without reporting the metric 'accuracy'; it reported no metric.", "infeasible"),
        ("", "infeasible"),
        (None, "infeasible"),
    ],
)
def test_failed_cancelled_and_infeasible_trials_have_different_words(reason: str | None, word: str) -> None:
    assert trial_word(TrialState.INFEASIBLE, reason) == word


def test_a_trial_whose_log_shows_an_error_has_failed() -> None:
    assert trial_word(TrialState.INFEASIBLE, None, has_failure=True) == "failed"


def test_every_word_is_counted() -> None:
    assert {trial_word(state, None) for state in TrialState} < set(WORDS)
    assert {"failed", "cancelled"} < set(WORDS)
