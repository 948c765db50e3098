"""Simulations of a deployment in which everything fails now and then, and checks that broken guarantees are reported.

`bench/simulation.py` runs a million events of the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.contract.simulation.disruptions import Disruption
from tests.contract.simulation.guarantees import run_and_check, simulate
from tests.contract.simulation.odds import Odds
from tests.contract.simulation.service import DEFERRALS, UnreliableJobs
from tests.contract.simulation.simulation import Simulation
from tests.contract.simulation.tally import Tally
from tests.contract.simulation.uploaders import Uploaders
from tests.contract.simulation.workload import TrainingJobs
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.flows.retraining import data
from trainmaster.orchestrator.flows.services import FlowResult

EVENTS = 1000
SEEDS_MAX = 8
"""How many simulations may be played until all is seen that must be."""
HARD = Odds(
    disruption=0.4, pause=0.3, duplicate=0.3, dropped=0.3, delayed=0.3, forged_job=0.1, forged_entry=0.3
)


def simulated_until(name: str, is_enough: Callable[[Sequence[Tally]], bool], **how: Any) -> list[Tally]:
    """The simulations of seeds `name 0`, `name 1`, …, one after another until all is seen that must be; none breaks a guarantee."""
    tallies: list[Tally] = []
    while not is_enough(tallies):
        assert len(tallies) < SEEDS_MAX, "what must be seen was not"
        tallies.append(simulate(seed=f"{name} {len(tallies)}", **how))
        assert tallies[-1].violations == []
    return tallies


def test_every_guarantee_holds_when_a_few_percent_of_the_deliveries_are_disrupted() -> None:
    tally = simulate(seed="one", events=EVENTS)
    assert tally.violations == []
    assert (tally.lost, tally.unfinished, tally.duplicate_jobs) == (0, 0, 0)
    assert tally.runs == tally.requests > 100


@pytest.mark.slow
def test_every_guarantee_holds_when_most_deliveries_are_disrupted() -> None:
    answers = {"created", *DEFERRALS, "refused", "request lost", "answer lost"}

    def has_seen_all(tallies: Sequence[Tally]) -> bool:
        disrupted = {disruption for tally in tallies for disruption in tally.disruptions}
        answered = {answer for tally in tallies for answer in tally.submissions}
        return (
            disrupted == set(Disruption) and answered == answers and any(tally.retries for tally in tallies)
        )

    simulated_until("hard b", has_seen_all, events=EVENTS, odds=HARD)


def test_caps_hold_and_ended_runs_free_what_they_did_not_spend_when_deliveries_are_disrupted() -> None:
    tallies = [
        simulate(seed=f"capped d {number}", events=EVENTS, odds=replace(odds, capped=1))
        for number, odds in enumerate((Odds(), HARD))
    ]
    assert [tally.violations for tally in tallies] == [[], []]
    assert all(tally.freed_by_ends > 10 for tally in tallies)
    assert any(tally.refused_by_caps for tally in tallies)


@pytest.mark.slow
def test_a_second_job_submitted_after_a_lease_expired_is_found() -> None:
    woken = Odds(pause=0.6, pause_s=60, beyond_lease=0.9, cancel_order=0.1)
    simulated_until(
        "woken", lambda tallies: any(tally.duplicate_jobs for tally in tallies), events=EVENTS, odds=woken
    )


@pytest.mark.slow
def test_the_same_seed_repeats_the_same_simulation() -> None:
    once, again, other = (simulate(seed=seed, events=EVENTS // 5) for seed in ("same", "same", "other"))
    assert once == again
    assert once.operations != other.operations


class NeverListedJobs(UnreliableJobs):
    """Jobs that are never listed: a process that takes a run over finds none and submits another."""

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return super().of_run(f"not {run_id}", kind, regions)


class SilentSimulation(Simulation):
    """Log entries never arrive and ticks stop, so that no end is reported."""

    def log_entry(self, kind: str, job: Job, *, tells_end: bool) -> None:
        pass

    def _next_tick(self, resting_s: float) -> None:
        pass


def test_an_order_to_cancel_that_does_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "trainmaster.orchestrator.flows.orders.cancel", lambda *_: FlowResult(message="nothing was done")
    )
    missing = {"although an order cancelled it", "was not cancelled"}
    for number in range(SEEDS_MAX):
        tally = simulate(seed=f"idle {number}", events=EVENTS // 2, odds=Odds(cancel_order=0.3))
        missing -= {text for text in missing if any(text in violation for violation in tally.violations)}
        if not missing:
            return
    pytest.fail(f"not reported: {missing}")


@pytest.mark.slow
def test_a_second_job_is_reported() -> None:
    simulations = (
        Simulation(seed=f"broken {number}", odds=HARD, jobs=NeverListedJobs) for number in range(4)
    )
    tallies = (run_and_check(simulation, EVENTS) for simulation in simulations)
    seen = next(tally for tally in tallies if tally.duplicate_jobs > 0)
    assert any("jobs too many" in violation for violation in seen.violations)


def test_a_run_that_never_ends_and_one_without_notices_are_reported() -> None:
    tally = run_and_check(SilentSimulation(seed="broken"), EVENTS // 5)
    assert tally.unfinished > 0
    assert any("never ended: submitted" in violation for violation in tally.violations)
    assert any("still has a marker" in violation for violation in tally.violations)
    assert any("no notice of" in violation for violation in tally.violations)


def test_an_upload_that_is_never_delivered_is_reported() -> None:
    class Losing(Simulation):
        def upload_or_message(self, incoming: IncomingDocument, kind: str) -> None:
            if kind == "message":
                super().upload_or_message(incoming, kind)

    tally = run_and_check(Losing(seed="broken"), EVENTS // 5)
    assert tally.lost > 0


OF_DATA = Odds(disruption=0.4, pause=0.3, duplicate=0.3, dropped=0.3, delayed=0.3)


@pytest.mark.parametrize(
    ("seed", "odds", "chunk"),
    [
        ("one", Odds(), 10_000),
        pytest.param("hard", OF_DATA, 10_000, marks=pytest.mark.slow),
        pytest.param("in parts", Odds(), 7, marks=pytest.mark.slow),
        pytest.param("hard, in parts", OF_DATA, 7, marks=pytest.mark.slow),
    ],
)
def test_every_object_is_in_one_manifest_of_each_rule(
    seed: str, odds: Odds, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "CHUNK_MAX", chunk)
    simulation = Simulation(seed=seed, odds=odds)
    uploaders, _ = Uploaders(simulation, EVENTS + 200), TrainingJobs(simulation)
    simulation.run()
    assert simulation.tally.bugs == []
    assert list(uploaders.violations()) == []
    fired = {record.source.rule_id for record in simulation.world.records()}
    assert fired == {"all", "folders"}
    assert len(simulation.world.records()) > 20
