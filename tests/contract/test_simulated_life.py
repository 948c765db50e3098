"""Whole lives of a deployment, with everything going wrong a little; and that a broken promise would be seen.

`bench/simulation.py` lives a million events of the same.
"""

from collections.abc import Sequence

import pytest

from tests.contract.life.accidents import Accident
from tests.contract.life.life import Life
from tests.contract.life.odds import Odds
from tests.contract.life.service import DEFERRALS, LivingJobs
from tests.contract.life.whole import account_of_whole, lived
from trainmaster.orchestrator.core.names import JobKind
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.flows.services import FlowResult

EVENTS = 1500
HARD = Odds(
    accident=0.4, pause=0.3, duplicate=0.3, dropped=0.3, delayed=0.3, forged_job=0.1, forged_entry=0.3
)


def test_a_life_with_faults_at_a_few_percent_keeps_every_promise() -> None:
    tally = lived(seed="one", events=EVENTS)
    assert tally.violations == []
    assert (tally.lost, tally.unfinished, tally.duplicate_jobs) == (0, 0, 0)
    assert tally.runs == tally.asked > 100


@pytest.mark.slow
def test_a_life_in_which_much_goes_wrong_keeps_every_promise_too() -> None:
    tallies = [lived(seed=f"hard {number}", events=EVENTS, odds=HARD) for number in range(2)]
    assert [tally.violations for tally in tallies] == [[]] * len(tallies)
    struck = {accident for tally in tallies for accident in tally.struck}
    answers = {answer for tally in tallies for answer in tally.service}
    assert struck == set(Accident), "every kind of accident came to pass"
    assert answers == {"created", *DEFERRALS, "refused", "request lost", "answer lost"}


@pytest.mark.slow
def test_a_process_that_goes_on_after_its_lease_makes_a_second_job_which_is_found() -> None:
    woken = Odds(pause=0.6, pause_s=60, beyond_lease=0.9, ordered_to_end=0.1)
    tallies = [lived(seed=f"woken {number}", events=EVENTS, odds=woken) for number in range(2)]
    assert sum(tally.duplicate_jobs for tally in tallies) > 0
    assert [tally.violations for tally in tallies] == [[]] * len(tallies)


def test_the_same_seed_lives_the_same_life() -> None:
    once, again, other = (lived(seed=seed, events=EVENTS // 3) for seed in ("same", "same", "other"))
    assert once == again
    assert once.operations != other.operations


class BlindJobs(LivingJobs):
    """A listing that never shows anything: whoever takes a run over finds no job and submits another."""

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return super().of_run(f"not {run_id}", kind, regions)


class DeafLife(Life):
    """Log entries never come, and the ticks stop: nobody tells of any end."""

    def log_entry(self, kind: str, job: Job, *, tells_end: bool) -> None:
        pass

    def _next_tick(self, resting_s: float) -> None:
        pass


def test_an_order_to_end_that_is_not_carried_out_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "trainmaster.orchestrator.flows.intake.cancel", lambda *_: FlowResult(message="nothing was done")
    )
    tally = lived(seed="broken", events=EVENTS // 2, odds=Odds(ordered_to_end=0.3))
    assert any("ordered to end" in violation for violation in tally.violations)
    assert any("was not asked to end" in violation for violation in tally.violations)


def test_a_second_job_would_be_seen() -> None:
    lives = (Life(seed=f"broken {number}", odds=HARD, jobs=BlindJobs) for number in range(4))
    tallies = (account_of_whole(life, EVENTS) for life in lives)
    seen = next(tally for tally in tallies if tally.duplicate_jobs > 0)
    assert any("jobs too many" in violation for violation in seen.violations)


def test_a_run_that_never_ends_and_one_that_is_not_told_would_be_seen() -> None:
    tally = account_of_whole(DeafLife(seed="broken"), EVENTS // 5)
    assert tally.unfinished > 0
    assert any("never ended: submitted" in violation for violation in tally.violations)
    assert any("has a marker still" in violation for violation in tally.violations)
    assert any("not told" in violation for violation in tally.violations)


def test_an_upload_that_is_never_delivered_would_be_seen() -> None:
    class Losing(Life):
        def upload_or_message(self, incoming: IncomingDocument, kind: str) -> None:
            if kind == "message":
                super().upload_or_message(incoming, kind)

    tally = account_of_whole(Losing(seed="broken"), EVENTS)
    assert tally.lost > 0
