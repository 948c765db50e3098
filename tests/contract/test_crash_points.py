"""A disruption before, during and after every call of the flows breaks no guarantee.

The process crashes or the call fails at one point. An unacknowledged event is redelivered, at once or after a
reconcile pass, and the request of a crashed process may still arrive. Then the world becomes idle.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest

from tests.contract.index import index_violations
from tests.contract.schemas import RECORD
from tests.contract.simulation.disruptions import PAUSES, DisruptedBoundary, Disruption, changes
from tests.contract.simulation.guarantees import notice_ids
from tests.contract.simulation.scenario_world import ScenarioWorld
from tests.contract.simulation.scenarios import REGISTERED, SCENARIOS, SMOKED, Scenario
from tests.contract.simulation.service import RecordedNotices
from tests.contract.simulation.steps import Step
from tests.contract.world import INBOX, LEASE, LEDGER, MODELS, Boundary, Killed
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.names import RUN_LABEL, STEP_LABEL, split_object_uri
from trainmaster.orchestrator.core.runs.end import RegistrationState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import MIB

DISRUPTIONS = sorted(set(Disruption) - PAUSES)
OF_CHANGES = frozenset(
    {Disruption.KILLED_AFTER, Disruption.KILLED_IN_FLIGHT, Disruption.FAILED_AFTER, Disruption.REPEATED}
)
"""Disruptions that matter only for calls that change something: after a read, the world is as it was before."""
DELIVERIES_MAX = 6
RANDOM = re.compile(r'[0-9a-f]{16}|"(batches|identities)": "[\w-]+"')
"""The name of an instance that gathers arrivals, and what a rule remembers about its batches, in order."""


def never(_: str) -> None:
    raise AssertionError("nothing is paused here")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A scenario before one of its steps: the world, the number of calls so far, and the remaining steps."""

    world: ScenarioWorld
    calls: int
    steps: tuple[Step, ...]


@cache
def run_undisturbed(name: str) -> tuple[tuple[str, ...], tuple[Checkpoint, ...]]:
    """The calls of the scenario and a checkpoint before each step; every record is checked against its schema."""
    scenario, checkpoints = SCENARIOS[name], list[Checkpoint]()
    boundary, world = Boundary(), ScenarioWorld(scenario.request_rules)
    for number, step in enumerate(scenario.steps):
        checkpoints.append(
            Checkpoint(world=world.clone(), calls=len(boundary.calls), steps=scenario.steps[number:])
        )
        step.act(world, boundary)
    for record in world.records():
        RECORD.validate(encoded(record))
    return tuple(boundary.calls), tuple(checkpoints)


@dataclass(kw_only=True)
class Replay:
    """A run of a scenario with a disruption at one call.

    It begins at the checkpoint before that call: earlier steps are the same for every disruption.
    """

    name: str
    point: int
    disruption: Disruption
    reconcile_first: bool
    checkpoint: Checkpoint = field(init=False)
    world: ScenarioWorld = field(init=False)
    disruptions: Counter[str] = field(default_factory=Counter)
    in_flight: list[Callable[[], object]] = field(default_factory=list)
    repeats: int = 0

    def __post_init__(self) -> None:
        _, checkpoints = run_undisturbed(self.name)
        self.checkpoint = [checkpoint for checkpoint in checkpoints if checkpoint.calls <= self.point][-1]
        self.world = self.checkpoint.world.clone()

    def run(self) -> ScenarioWorld:
        """The idle world after the whole scenario."""
        return self.rest(is_repeated=self.disrupt())

    def disrupt(self) -> bool:
        """Deliver the checkpoint's step, disrupted; whether the delivery must be repeated."""
        boundary = DisruptedBoundary(
            plan={self.point - self.checkpoint.calls: self.disruption},
            operations=Counter(),
            disruptions=self.disruptions,
            pause=never,
            land=self.in_flight.append,
        )
        died = self._died(self.checkpoint.steps[0], boundary)
        self._land()  # before the lease expires: no request is in flight for longer
        return died

    def rest(self, *, is_repeated: bool) -> ScenarioWorld:
        """Repeat that delivery if need be, and make the others, until the world is idle."""
        first, *others = self.checkpoint.steps
        if is_repeated:
            self._repeat(first)
        for step in others:
            if self._died(step, Boundary()):
                self._repeat(step)
        for seconds in (61, LEASE.total_seconds(), 61, 601, 61):
            self.world.wait(seconds)
            self.world.reconcile()
            self.world.tick()
        return self.world

    def _repeat(self, step: Step) -> None:
        self.repeats += 1
        if self.reconcile_first:
            self.world.wait(LEASE.total_seconds() + 1)
            self.world.reconcile()
            self.world.tick()
        if step.retried:
            for _ in range(DELIVERIES_MAX):
                if not self._died(step, Boundary()):
                    return
                self.world.wait(LEASE.total_seconds() / 2)
            raise AssertionError(f"not acknowledged after {DELIVERIES_MAX} deliveries")
        self.world.wait(LEASE.total_seconds() + 1)
        step.act(self.world, Boundary())

    def _died(self, step: Step, boundary: Boundary) -> bool:
        """Whether the delivery must be repeated."""
        try:
            step.act(self.world, boundary)
        except Killed:
            return True
        except TrainmasterError as error:
            return error.retryable
        return False

    def _land(self) -> None:
        for call in self.in_flight:
            try:
                call()
            except TrainmasterError:
                continue  # the process that made the call is gone
        self.in_flight.clear()


def violations(scenario: Scenario, world: ScenarioWorld) -> list[str]:
    """Every broken guarantee."""
    records = world.records()
    found = [record.state for record in records]
    problems = [] if found == list(scenario.ends) else [f"the runs are {found}, not {list(scenario.ends)}"]
    every = [(job.labels[RUN_LABEL], job.labels.get(STEP_LABEL)) for job in world.jobs.all()]
    jobs = Counter(run_id for run_id, step in every if step is None)
    problems += [
        f"{run_id} was scored {times} times"
        for run_id, times in (Counter(every) - Counter(set(every))).items()
        if run_id[1]
    ]
    rounds = {record.run_id: record.round for record in records}
    problems += [f"{run_id} has {count} jobs" for run_id, count in jobs.items() if count > 1 + rounds[run_id]]
    if world.room.most > scenario.at_once:
        problems.append(f"{world.room.most} jobs were active at once, not {scenario.at_once}")
    if len(every) != scenario.job_count:
        problems.append(f"there are {len(every)} jobs, not {scenario.job_count}")
    problems += [f"{run_id} has a marker" for run_id in world.active()]
    ids = {notice.id for notice in world.notices.published}
    for record in records:
        announced = {
            each.removeprefix(f"{record.run_id}/") for each in ids if each.startswith(f"{record.run_id}/")
        }
        entered = set(notice_ids(record))
        # A wait is announced before it is recorded; the process that takes the run over may find quota.
        announced = {each for each in announced if each in entered or not each.startswith(RunState.WAITING)}
        if announced != entered:
            problems.append(f"{record.run_id} entered {sorted(entered)} and announced {sorted(announced)}")
        is_shown = record.source.group is None or record.source.group.number == 1
        if record.source.object_name is not None and is_shown:
            status = world.document(f"status/{record.source.object_name}.json")
            if status["state"] != record.state:
                problems.append(f"{record.run_id} is {record.state}, its status says {status['state']}")
    for model_name, value in scenario.champion.items():
        champion = world.services().champions.find(model_name)
        current = champion.current.value if champion is not None and champion.current is not None else None
        if current != value:
            problems.append(f"the champion of {model_name} has {current}, not {value}")
        reigns = champion.history if champion is not None else ()
        problems += [
            f"reign {each.number} has no notice"
            for each in reigns
            if f"champions/{model_name}/{each.number}" not in ids
        ]
        began = Counter((each.cause, each.order_id or each.run_id) for each in reigns)
        problems += [
            f"{each} changed the champion {times} times" for each, times in began.items() if times > 1
        ]
    problems += registry_violations(scenario, world, records)
    for record in records:
        if record.rejection is None:
            continue
        if record.rejection.cap is not None and f"caps/{record.rejection.cap}" not in ids:
            problems.append(f"{record.rejection.cap} was reached without a notice")
        if not world.document(f"rejected/{record.run_id}.json")["faults"]:
            problems.append(f"{record.run_id} was rejected without a report")
    problems += index_violations(world, records)
    problems += data_violations(scenario, world)
    left = [each.name for prefix in ("waiting/", "slots/") for each in world.objects.listing(LEDGER, prefix)]
    return [*problems, *(f"left over: {name}" for name in [*world.batches(), *left])]


def registry_violations(
    scenario: Scenario, world: ScenarioWorld, records: Sequence[RunRecord]
) -> Iterator[str]:
    """Runs without a version, or with more than a crash between an upload and its record explains; a misplaced alias."""
    if scenario.request_rules not in (REGISTERED, SMOKED):
        return
    versions = Counter(each.labels[RUN_LABEL] for each in world.models.versions("cassava").values())
    for record in records:
        completion = present(record.completion)
        state = completion.registration.state if completion.registration else None
        is_promoted = completion.champion is not None and completion.champion.promoted
        if (state is RegistrationState.REGISTERED, versions[record.run_id] in (1, 2)) != (is_promoted,) * 2:
            yield f"{record.run_id} is {state}, with {versions[record.run_id]} versions; promoted: {is_promoted}"
    champion = world.services().champions.find("cassava")
    current = champion.current.run_id if champion is not None and champion.current is not None else None
    registered = champion.registered if champion is not None else None
    allowed, noted = {current}, {current}
    if scenario.request_rules is SMOKED and champion is not None:
        smokes = {record.run_id: present(present(record.completion).smoke) for record in records}
        passed = [each.run_id for each in champion.history if smokes[each.run_id].scores is not None]
        if current != passed[-1]:
            # The one that passed may have done so, or its alias may be noted, only when it was no longer champion.
            allowed, noted = {passed[-1], None}, {passed[-1], None}
    found = world.models.aliased_run("cassava")
    if found not in allowed or (registered.run_id if registered else None) not in noted:
        yield f"the alias is on {found}, not on {current}; recorded: {registered}"


def data_violations(scenario: Scenario, world: ScenarioWorld) -> Iterator[str]:
    """Objects that no manifest lists or more than one does, and chunks of objects that a state names and that are gone."""
    if not scenario.named:
        return
    named = [name for record in world.records() for name in manifest_names(world, record)]
    if sorted(named) != sorted(scenario.named):
        yield f"the manifests list {sorted(named)}"
    kept = {each.name for each in world.objects.listing(LEDGER, "rule-data/")}
    yield from (f"{name} is gone" for name in world.state().chunks if name not in kept)


def manifest_names(world: ScenarioWorld, record: RunRecord) -> list[str]:
    values = record.source.firing_values or {}
    if (uri := values.get("data.manifest_uri")) is None:
        return []
    content = world.objects.read(*split_object_uri(uri), max_bytes=MIB).content
    return [split_object_uri(json.loads(line)["uri"])[1] for line in content.splitlines()]


def rule_violations(scenario: Scenario, world: ScenarioWorld) -> Iterator[str]:
    """What the runs lack from the rule that fired them, and what the rule's status lacks."""
    records = world.records()
    documents = [record.request.document for record in records if record.request is not None]
    for name, value in scenario.shows.items():
        yield from (f"{name} is {each.get(name)}" for each in documents if each.get(name) != value)
    firings = [record.source.firing for record in records]
    if scenario.firings and firings != list(scenario.firings):
        yield f"the runs were started by the firings {firings}"
    for name, value in scenario.rule.items():
        found = world.rule_status().get(name)
        if found != value:
            yield f"the rule's status has {name} {found}"


_known: dict[object, list[str]] = {}
"""The violations after each state in which a disruption left the world."""


def violations_after(replay: Replay) -> list[str]:
    """Every broken guarantee. Disruptions that leave the same world with the same steps are replayed only once."""
    is_repeated = replay.disrupt()
    state = (replay.name, len(replay.checkpoint.steps), is_repeated, replay.world.fingerprint())
    if (state, replay.reconcile_first) not in _known:
        scenario, world = SCENARIOS[replay.name], replay.rest(is_repeated=is_repeated)
        reconciled = replay.reconcile_first and replay.repeats > 0
        found = violations(scenario, world)
        if not reconciled:  # otherwise the rule may fire before all data has arrived
            found += rule_violations(scenario, world)
        # Without a repeated step, the order of reconciling and repeating makes no difference.
        same = (replay.reconcile_first,) if replay.repeats else (False, True)
        _known.update({(state, reconcile_first): found for reconcile_first in same})
    return _known[state, replay.reconcile_first]


def points_of(name: str, disruption: Disruption) -> list[tuple[int, str]]:
    """The calls, by number and name, at which the disruption leaves a state of the world that no other leaves.

    A crash before a call equals one after the last change in the same step, so only a step's first call remains.
    """
    calls, checkpoints = run_undisturbed(name)
    if disruption is Disruption.KILLED_BEFORE:
        return [
            (point, calls[point])
            for point in sorted({checkpoint.calls for checkpoint in checkpoints} - {len(calls)})
        ]
    return [
        (point, call) for point, call in enumerate(calls) if changes(call) or disruption not in OF_CHANGES
    ]


@pytest.mark.parametrize(
    ("disruption", "reconcile_first"),
    [
        (Disruption.KILLED_AFTER, False),
        *(
            pytest.param(disruption, reconcile_first, marks=pytest.mark.slow)
            for reconcile_first in (False, True)
            for disruption in DISRUPTIONS
            if (disruption, reconcile_first)
            not in {(Disruption.KILLED_AFTER, False), (Disruption.REPEATED, True)}
        ),
    ],
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_disruption_at_any_call_breaks_no_guarantee(
    name: str, disruption: Disruption, reconcile_first: bool
) -> None:
    points = points_of(name, disruption)
    problems = list[str]()
    for point, call in points:
        replay = Replay(name=name, point=point, disruption=disruption, reconcile_first=reconcile_first)
        problems += [f"at call {point}, {call}: {each}" for each in violations_after(replay)]
        assert replay.disruptions == {disruption: 1}
    assert problems == []
    assert points


def snapshot_of(world: ScenarioWorld) -> str:
    names = [
        (bucket, each.name, each.generation)
        for bucket in (INBOX, LEDGER, MODELS)
        for each in world.objects.listing(bucket, "")
    ]
    contents = {name: world.objects.read(*name, max_bytes=MIB).content for name in names}
    announced = (contents, world.jobs.all(), world.notices.published, world.clock.now(), world.room.asked)
    return RANDOM.sub("random", repr(announced))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_ends_the_same_from_each_of_its_checkpoints(name: str) -> None:
    ends = []
    for checkpoint in run_undisturbed(name)[1]:
        world = checkpoint.world.clone()
        for step in checkpoint.steps:
            step.act(world, Boundary())
        ends.append(snapshot_of(world))
    assert ends == [ends[0]] * len(ends)


def test_a_second_job_and_an_end_without_a_notice_are_reported() -> None:
    """The listing never shows a job, so that a process that takes a run over submits again; no notice is sent."""
    name = "an upload whose job starts and succeeds"
    calls, _ = run_undisturbed(name)
    replay = Replay(
        name=name, point=calls.index("submit"), disruption=Disruption.KILLED_AFTER, reconcile_first=False
    )
    replay.world.jobs.of_run = lambda *_: ()  # type: ignore[method-assign]  # as a working listing never is
    replay.world.notices = RecordedNotices(lambda _: None)
    problems = violations(SCENARIOS[name], replay.run())
    assert any("has 2 jobs" in problem for problem in problems)
    assert any("and announced []" in problem for problem in problems)
