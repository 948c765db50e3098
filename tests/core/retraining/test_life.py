"""A rule's whole life: whatever happens in whatever order, and wherever a process dies, its limits hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.deciding import DATA, FEATURES, HOURLY, MANUAL, call, ordered, tick, upstream
from tests.core.retraining_cases import DAY, NOON, arrived, batch, fresh, rule
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.decision import (
    Decision,
    Facts,
    Fire,
    Hold,
    NothingDue,
    decide_on_signal,
)
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import RuleState, with_launch
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals


@dataclass
class Life:
    """A rule's life, event by event; a crash loses nothing that was written."""

    one: Rule
    state: RuleState
    times: list[datetime] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    ended: bool = True

    def see(self, decision: Decision, *, crash: bool) -> None:
        match decision:
            case Fire(state=state, firing=firing):
                self.state = state
                if firing.run_id not in self.runs:
                    self.runs.append(firing.run_id)
                    self.times.append(firing.at)
                if not crash:
                    self.state = with_launch(state)
                    self.ended = False
            case Hold(state=state):
                self.state = state
            case NothingDue():
                pass


events = st.lists(
    st.tuples(
        st.sampled_from(["tick", "call", "again", "data", "end"]), st.integers(0, 4 * 3600), st.booleans()
    ),
    max_size=60,
)


@settings(max_examples=80, deadline=None)
@given(
    story=events,
    cap=st.integers(1, 5),
    cooldown_s=st.sampled_from([0, 60, 7200]),
    while_running=st.sampled_from(["skip", "queue_one", "replace"]),
)
def test_no_limit_is_broken_and_no_signal_fires_twice(
    story: Sequence[tuple[str, int, bool]], cap: int, cooldown_s: int, while_running: str
) -> None:
    one = rule(MANUAL, HOURLY, DATA, max_per_day=cap, cooldown_s=cooldown_s, while_running=while_running)
    life = Life(one=one, state=fresh(one))
    now, calls = NOON, 0
    by_event: list[str] = []
    for kind, wait_s, crash in story:
        now += timedelta(seconds=wait_s)
        before = len(life.runs)
        life.state = with_launch(life.state)  # what a crash has left, a turn launches before it decides
        match kind:
            case "tick":
                decision = tick(one, life.state, now, ended=life.ended)
            case "call" | "again":
                calls += kind == "call"
                decision = call(one, life.state, now, order=f"o{calls}", ended=life.ended)
            case "data":
                life.state = with_arrivals(
                    life.state, one, [batch(f"{now}", [arrived(f"cassava/{now}", at=now)])]
                )
                continue
            case _:
                life.ended = True
                continue
        if isinstance(decision, Fire):
            by_event.append(decision.firing.event_id)
        life.see(decision, crash=crash)
        assert len(life.runs) <= before + 1
    assert len(set(life.runs)) == len(life.runs) == len(by_event)
    for number, at in enumerate(life.times):
        within = [each for each in life.times[number:] if each < at + DAY]
        assert len(within) <= cap
    for first, then in pairwise(life.times):
        assert then - first >= timedelta(seconds=cooldown_s)
    called = [event for event in by_event if event.startswith("o")]
    assert len(set(called)) == len(called)
    scheduled = [event for event in by_event if event.startswith("schedule/")]
    assert len(set(scheduled)) == len(scheduled)


@settings(max_examples=150, deadline=None)
@given(
    story=st.lists(
        st.tuples(
            st.sampled_from(["tick", "call", "again", "features", "repeated", "data", "end"]),
            st.integers(0, 3600),
            st.booleans(),
        ),
        max_size=60,
    ),
    cooldown_s=st.sampled_from([0, 1800]),
    while_running=st.sampled_from(["skip", "queue_one", "replace"]),
)
def test_a_rule_never_fires_when_only_some_of_all_hold_and_always_when_all_do(
    story: Sequence[tuple[str, int, bool]], cooldown_s: int, while_running: str
) -> None:
    one = rule(
        {"all": [HOURLY, DATA]},
        {"all": [MANUAL, FEATURES]},
        cooldown_s=cooldown_s,
        while_running=while_running,
        max_per_day=1000,
    )
    life, now = Life(one=one, state=fresh(one)), NOON
    objects, new, sent = 0, set[str](), {"call": 0, "features": 0}
    for kind, wait_s, crash in story:
        now += timedelta(seconds=wait_s)
        life.state = with_launch(life.state)
        match kind:
            case "tick":
                decision = tick(one, life.state, now, ended=life.ended)
            case "data":
                objects += 1
                life.state = with_arrivals(
                    life.state, one, [batch(f"{now}", [arrived(f"cassava/{now}", at=now)])]
                )
                continue
            case "end":
                life.ended = True
                continue
            case _:
                name = "call" if kind in ("call", "again") else "features"
                if kind == name or not sent[name]:
                    sent[name] += 1
                    new.add(name)
                message = f"{name}/{sent[name]}"
                told = upstream("features", "succeeded", message)
                signal = ordered(message, one.rule_id, now) if name == "call" else told
                facts = Facts(now=now, current_ended=life.ended)
                decision = decide_on_signal(one, signal, life.state, facts)
        if isinstance(decision, Fire):
            if decision.firing.condition is ConditionKind.SCHEDULE:
                # A firing that waited its turn was due when enough data had arrived.
                assert objects >= 3 or while_running == "queue_one"
            else:
                assert new == {"call", "features"}
            objects, new = 0, set()
        elif isinstance(decision, NothingDue) and kind == "tick":
            assert new != {"call", "features"}
        life.see(decision, crash=crash)
