"""An accident at every call the flows make, before, in and after it: whatever happens then, every promise is kept.

The process dies or the call fails at one point; what was not acknowledged comes again, at once or only after the
reconciler has been there; a dead process's request may still arrive. Then the world comes to rest.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import pytest

from tests.contract.life.accidents import PAUSES, Accident, AccidentBoundary, changes
from tests.contract.life.guarantees import entered_ids
from tests.contract.life.scenes import SCENES, Scene
from tests.contract.life.service import LivingNotices
from tests.contract.life.stage import Stage
from tests.contract.life.steps import Step
from tests.contract.rooms import RECORD
from tests.contract.world import INBOX, LEASE, LEDGER, MODELS, Boundary, Killed
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.orchestrator.core.runs.states import RunState

ACCIDENTS = sorted(set(Accident) - PAUSES)
OF_CHANGES = frozenset(
    {Accident.KILLED_AFTER, Accident.KILLED_IN_FLIGHT, Accident.FAILED_AFTER, Accident.REPEATED}
)
"""Accidents of calls that change something: after a read, the world is as it was before it."""
DELIVERIES_MAX = 6
RANDOM = re.compile(r'[0-9a-f]{16}|"(batches|identities)": "[\w-]+"')
"""The name of an instance that gathers arrivals; and what a rule remembers of its batches, in their order."""


def never(_: str) -> None:
    raise AssertionError("nothing is paused here")


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A scene that went undisturbed up to a step: the stage then, the number of calls before, the steps to come."""

    stage: Stage
    calls: int
    steps: tuple[Step, ...]


@cache
def undisturbed(name: str) -> tuple[tuple[str, ...], tuple[Chapter, ...]]:
    """The calls of the scene, every record of which fits its schema, and the chapters in which they are made."""
    scene, chapters = SCENES[name], list[Chapter]()
    boundary, stage = Boundary(), Stage(scene.request_rules)
    for number, step in enumerate(scene.steps):
        chapters.append(Chapter(stage=stage.copied(), calls=len(boundary.calls), steps=scene.steps[number:]))
        step.act(stage, boundary)
    for record in stage.records():
        RECORD.validate(encoded(record))
    return tuple(boundary.calls), tuple(chapters)


@dataclass(kw_only=True)
class Replay:
    """One telling of a scene, with an accident at one call.

    It begins with the step of that call: what came before is the same for every accident.
    """

    name: str
    point: int
    accident: Accident
    reconcile_first: bool
    chapter: Chapter = field(init=False)
    stage: Stage = field(init=False)
    struck: Counter[str] = field(default_factory=Counter)
    late: list[Callable[[], object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        _, chapters = undisturbed(self.name)
        self.chapter = [chapter for chapter in chapters if chapter.calls <= self.point][-1]
        self.stage = self.chapter.stage.copied()

    def run(self) -> Stage:
        boundary = AccidentBoundary(
            plan={self.point - self.chapter.calls: self.accident},
            operations=Counter(),
            struck=self.struck,
            pause=never,
            land=self.late.append,
        )
        for step in self.chapter.steps:
            self._deliver(step, boundary)
        self._land()
        for seconds in (61, LEASE.total_seconds(), 61, 601, 61):
            self.stage.wait(seconds)
            self.stage.reconcile()
            self.stage.tick()
        return self.stage

    def _deliver(self, step: Step, boundary: Boundary) -> None:
        if not self._died(step, boundary):
            return
        self._land()  # while the lease lives: a request is not on its way for longer
        if self.reconcile_first:
            self.stage.wait(LEASE.total_seconds() + 1)
            self.stage.reconcile()
            self.stage.tick()
        if step.again:
            for _ in range(DELIVERIES_MAX):
                if not self._died(step, Boundary()):
                    return
                self._land()
                self.stage.wait(LEASE.total_seconds() / 2)
            raise AssertionError(f"not acknowledged after {DELIVERIES_MAX} deliveries")
        self.stage.wait(LEASE.total_seconds() + 1)
        step.act(self.stage, Boundary())

    def _died(self, step: Step, boundary: Boundary) -> bool:
        """Whether the delivery must be repeated."""
        try:
            step.act(self.stage, boundary)
        except Killed:
            return True
        except TrainmasterError as error:
            return error.retryable
        return False

    def _land(self) -> None:
        for call in self.late:
            try:
                call()
            except TrainmasterError:
                continue  # nobody is there to hear it
        self.late.clear()


def broken(scene: Scene, stage: Stage) -> list[str]:
    """Every promise that is not kept."""
    records = stage.records()
    found = [record.state for record in records]
    problems = [] if found == list(scene.ends) else [f"the runs are {found}, not {list(scene.ends)}"]
    jobs = Counter(job.labels[RUN_LABEL] for job in stage.jobs.all())
    rounds = {record.run_id: record.round for record in records}
    problems += [f"{run_id} has {count} jobs" for run_id, count in jobs.items() if count > 1 + rounds[run_id]]
    if stage.room.most > scene.at_once:
        problems.append(f"{stage.room.most} jobs went on at once, not {scene.at_once}")
    if jobs.total() != scene.jobs:
        problems.append(f"there are {jobs.total()} jobs, not {scene.jobs}")
    problems += [f"{run_id} has a marker" for run_id in stage.active()]
    ids = {notice.id for notice in stage.notices.published}
    for record in records:
        told = {
            each.removeprefix(f"{record.run_id}/") for each in ids if each.startswith(f"{record.run_id}/")
        }
        entered = set(entered_ids(record))
        # A wait is told before it is on record; whoever takes the run over may find room.
        told = {each for each in told if each in entered or not each.startswith(RunState.WAITING)}
        if told != entered:
            problems.append(f"{record.run_id} entered {sorted(entered)} and told {sorted(told)}")
        if record.source.object_name is not None:
            status = stage.document(f"status/{record.source.object_name}.json")
            if status["state"] != record.state:
                problems.append(f"{record.run_id} is {record.state}, its status {status['state']}")
    for model_name, value in scene.champion.items():
        champion = stage.services().champions.find(model_name)
        current = champion.current.value if champion is not None and champion.current is not None else None
        if current != value:
            problems.append(f"the champion of {model_name} has {current}, not {value}")
        reigns = champion.history if champion is not None else ()
        problems += [
            f"reign {each.number} was not told"
            for each in reigns
            if f"champions/{model_name}/{each.number}" not in ids
        ]
        began = Counter((each.cause, each.order_id or each.run_id) for each in reigns)
        problems += [
            f"{each} changed the champion {times} times" for each, times in began.items() if times > 1
        ]
    for record in records:
        if record.rejection is None:
            continue
        if record.rejection.cap is not None and f"caps/{record.rejection.cap}" not in ids:
            problems.append(f"{record.rejection.cap} was reached and not told")
        if not stage.document(f"rejected/{record.run_id}.json")["faults"]:
            problems.append(f"{record.run_id} was rejected without a report")
    left = [each.name for prefix in ("waiting/", "slots/") for each in stage.objects.listing(LEDGER, prefix)]
    return [*problems, *(f"left over: {name}" for name in [*stage.batches(), *left])]


def broken_of_rules(scene: Scene, stage: Stage) -> Iterator[str]:
    """What runs do not have from the rule that fired them, and the rule's status does not say."""
    records = stage.records()
    documents = [record.request.document for record in records if record.request is not None]
    for name, value in scene.shows.items():
        yield from (f"{name} is {each.get(name)}" for each in documents if each.get(name) != value)
    firings = [record.source.firing for record in records]
    if scene.firings and firings != list(scene.firings):
        yield f"the runs came of the firings {firings}"
    for name, value in scene.rule.items():
        found = stage.rule_status().get(name)
        if found != value:
            yield f"the status of the rule has {name} {found}"


def points_of(name: str, accident: Accident) -> list[tuple[int, str]]:
    """The calls, by number and name, at which the accident leaves the world as no other one does.

    To die before a call is to die after the last change of the same step: only a step's first call is left for it.
    """
    calls, chapters = undisturbed(name)
    if accident is Accident.KILLED_BEFORE:
        return [
            (point, calls[point]) for point in sorted({chapter.calls for chapter in chapters} - {len(calls)})
        ]
    return [(point, call) for point, call in enumerate(calls) if changes(call) or accident not in OF_CHANGES]


@pytest.mark.parametrize(
    ("accident", "reconcile_first"),
    [
        *((accident, False) for accident in ACCIDENTS),
        *(
            pytest.param(accident, True, marks=pytest.mark.slow)
            for accident in ACCIDENTS
            if accident is not Accident.REPEATED
        ),
    ],
)
@pytest.mark.parametrize("name", SCENES)
def test_an_accident_at_any_call_breaks_no_promise(
    name: str, accident: Accident, reconcile_first: bool
) -> None:
    points = points_of(name, accident)
    problems = list[str]()
    for point, call in points:
        replay = Replay(name=name, point=point, accident=accident, reconcile_first=reconcile_first)
        stage = replay.run()
        found = broken(SCENES[name], stage)
        if not reconcile_first:  # while it goes on, less data may have come when the rule fires
            found += broken_of_rules(SCENES[name], stage)
        problems += [f"at call {point}, {call}: {each}" for each in found]
        assert replay.struck == {accident: 1}
    assert problems == []
    assert points


def everything_on(stage: Stage) -> str:
    names = [
        (bucket, each.name, each.generation)
        for bucket in (INBOX, LEDGER, MODELS)
        for each in stage.objects.listing(bucket, "")
    ]
    contents = {name: stage.objects.read(*name).content for name in names}
    told = (contents, stage.jobs.all(), stage.notices.published, stage.clock.now(), stage.room.asked)
    return RANDOM.sub("random", repr(told))


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_that_goes_on_from_any_of_its_chapters_is_the_same(name: str) -> None:
    ends = []
    for chapter in undisturbed(name)[1]:
        stage = chapter.stage.copied()
        for step in chapter.steps:
            step.act(stage, Boundary())
        ends.append(everything_on(stage))
    assert ends == [ends[0]] * len(ends)


def test_a_second_job_and_an_end_that_is_not_told_would_be_found() -> None:
    """On a service whose listing shows nothing, so that whoever takes a run over submits again; and with nobody told."""
    name = "an upload, its job's running and its end"
    calls, _ = undisturbed(name)
    replay = Replay(
        name=name,
        point=calls.index("submit"),
        accident=Accident.KILLED_AFTER,
        reconcile_first=False,
    )
    replay.stage.jobs.of_run = lambda *_: ()  # type: ignore[method-assign]  # as it never is
    replay.stage.notices = LivingNotices(lambda _: None)
    problems = broken(SCENES[name], replay.run())
    assert any("has 2 jobs" in problem for problem in problems)
    assert any("and told []" in problem for problem in problems)
