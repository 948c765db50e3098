"""Short stories of what the flows do, each as the deliveries that make it, and what it must come to.

A story is told once undisturbed to learn its calls, and then again with an accident at each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.contract.life.steps import (
    RULE_REMOVED,
    TICK,
    Step,
    becomes,
    cancelled,
    data_came,
    deleted,
    finished,
    fired,
    full,
    logged,
    noticed,
    published,
    pushed,
    rolled_back,
    rule_dropped,
    stocked_out,
    too_fast,
    trained,
    tried,
    uploaded,
    waited,
)
from tests.contract.retraining import IMAGE, MANUAL, SMALL, rule
from tests.contract.rooms import TWO_REGIONS
from tests.contract.world import ELSEWHERE, REQUEST_RULES, request_rules_with
from trainmaster.orchestrator.core.policy.admission import Admission, Caps, Limit
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState

CHALLENGER = {**SMALL, "champion": {"metric": "accuracy", "goal": "maximize"}}
TUNED = {
    **SMALL,
    "tuning": {
        "metrics": [{"id": "accuracy", "goal": "maximize"}],
        "parameters": {"rate": {"type": "double", "min": 0.1, "max": 1.0}},
        "max_trials": 2,
        "parallel_trials": 2,
    },
}
WITH_FALLBACK = {**SMALL, "fallbacks": [{"region": ELSEWHERE}]}
LIMITED = request_rules_with(admission=Admission(limits=(Limit(jobs=1, per_model=True),)))
CAPPED = request_rules_with(admission=Admission(caps=Caps(runs_per_hour=1)))
ENDED = (RunState.SUCCEEDED,)
NEW_IMAGE = {"new_image": {"repository": IMAGE, "tag": "latest"}}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """`ends`: the states of the runs, by when they were asked for. `jobs`: how many there are in the end.

    `at_once`: so many jobs may go on at the same time. `shows`: what the canonical request of every run says.
    `firings`: which firing each run came of. `rule`: what the status of the rule says.
    """

    steps: tuple[Step, ...]
    ends: tuple[RunState, ...] = ENDED
    jobs: int = 1
    champion: Mapping[str, float] = field(default_factory=dict)
    shows: Mapping[str, object] = field(default_factory=dict)
    firings: tuple[int, ...] = ()
    rule: Mapping[str, object] = field(default_factory=dict)
    request_rules: RequestRules = REQUEST_RULES
    at_once: int = 100


SCENES: Mapping[str, Scene] = {
    "an upload, its job's running and its end": Scene(
        steps=(
            uploaded("a"),
            uploaded("a"),
            becomes(0, JobState.RUNNING),
            logged(0),
            *finished(0),
            logged(0),
            TICK,
        ),
    ),
    "a message with a key, and an end that no entry told": Scene(
        steps=(published("k"), trained(0), TICK, published("k"))
    ),
    "a faulty request": Scene(
        steps=(uploaded("a", {"model_name": "x"}), TICK), ends=(RunState.REJECTED,), jobs=0
    ),
    "a job that fails": Scene(
        steps=(uploaded("a"), becomes(0, JobState.FAILED), waited(120), logged(0)), ends=(RunState.FAILED,)
    ),
    "a job that a user cancels": Scene(
        steps=(uploaded("a"), becomes(0, JobState.CANCELLED), TICK, logged(0)), ends=(RunState.CANCELLED,)
    ),
    "a job that a user deletes": Scene(
        steps=(uploaded("a"), deleted(0), waited(601), TICK), ends=(RunState.FAILED,), jobs=0
    ),
    "an order to end a run that has a job": Scene(
        steps=(uploaded("a"), cancelled(0), logged(0), cancelled(0), TICK), ends=(RunState.CANCELLED,)
    ),
    "an order to end a run that waits for room, and who waits behind it": Scene(
        steps=(
            full(True),
            uploaded("a"),
            uploaded("b"),
            cancelled(0),
            full(False),
            waited(31),
            TICK,
            *finished(0),
        ),
        ends=(RunState.CANCELLED, RunState.SUCCEEDED),
    ),
    "no room for a while": Scene(
        steps=(full(True), uploaded("a"), waited(31), TICK, full(False), waited(61), TICK, *finished(0))
    ),
    "a new run that takes along who is ahead of it, waiting for the same": Scene(
        steps=(
            full(True),
            uploaded("a"),
            full(False),
            waited(31),
            uploaded("b"),
            *finished(0),
            *finished(1),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=2,
    ),
    "a job that finds no capacity, and the next candidate": Scene(
        steps=(
            uploaded("a", WITH_FALLBACK),
            stocked_out(0),
            logged(0),
            logged(0),
            *finished(1),
            TICK,
        ),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "a stockout that no entry told, and one candidate": Scene(
        steps=(uploaded("a"), stocked_out(0), TICK, waited(31), TICK, trained(1), TICK), jobs=2
    ),
    "no room on any candidate, and then on the second": Scene(
        steps=(
            full(True),
            uploaded("a", WITH_FALLBACK),
            full(False),
            waited(31),
            TICK,
            stocked_out(0),
            logged(0),
            *finished(1),
        ),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "too many requests": Scene(steps=(too_fast(1), uploaded("a"), waited(31), TICK, *finished(0))),
    "one job of a model at once, the next woken by the end of the first": Scene(
        steps=(
            uploaded("a"),
            uploaded("b"),
            uploaded("b"),
            *finished(0),
            TICK,
            *finished(1),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=2,
        request_rules=LIMITED,
        at_once=1,
    ),
    "an order to end a run that waits for a limit": Scene(
        steps=(uploaded("a"), uploaded("b"), cancelled(1), *finished(0), TICK),
        ends=(RunState.SUCCEEDED, RunState.CANCELLED),
        request_rules=LIMITED,
        at_once=1,
    ),
    "a stockout under a limit makes place for another": Scene(
        steps=(
            uploaded("a"),
            uploaded("b"),
            stocked_out(0),
            logged(0),
            *finished(1),
            waited(31),
            TICK,
            trained(2),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=3,
        request_rules=LIMITED,
        at_once=1,
    ),
    "a cap that refuses the second run of an hour": Scene(
        steps=(uploaded("a"), uploaded("b"), uploaded("b"), *finished(0), TICK),
        ends=(RunState.SUCCEEDED, RunState.REJECTED),
        request_rules=CAPPED,
    ),
    "a study": Scene(steps=(uploaded("a", TUNED), tried(0), logged(0), TICK)),
    "two challengers, and an order to go back": Scene(
        steps=(
            uploaded("a", CHALLENGER),
            *finished(0, 0.5),
            TICK,
            uploaded("b", CHALLENGER),
            *finished(1, 0.7),
            TICK,
            rolled_back("back"),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=2,
        champion={"cassava": 0.5},
    ),
    "data that fires a rule": Scene(
        steps=(
            rule_dropped(rule()),
            *(data_came(number) for number in range(4)),
            TICK,
            waited(61),
            TICK,
            *finished(0),
        ),
        shows={"args": ["--seen=4"]},
        firings=(1,),
        rule={"state": "accepted", "firings": 1},
    ),
    "an image that fires a rule, told twice": Scene(
        steps=(
            rule_dropped(rule(NEW_IMAGE, request={**SMALL, "image": "${image.uri}"})),
            pushed("a"),
            pushed("a"),
            TICK,
            *finished(0),
        ),
        shows={"image": f"{IMAGE}@sha256:{'a' * 64}"},
        firings=(1,),
    ),
    "a rule whose file goes after it fired": Scene(
        steps=(rule_dropped(rule(MANUAL)), fired("1"), RULE_REMOVED, TICK, *finished(0)),
        firings=(1,),
        rule={"state": "retired"},
    ),
    "a firing that waits for the end of the run before it": Scene(
        steps=(
            rule_dropped(rule(MANUAL, while_running="queue_one")),
            fired("1"),
            waited(1),
            fired("2"),
            noticed(0),
            *finished(1),
        ),
        ends=ENDED * 2,
        jobs=2,
        firings=(1, 2),
    ),
    "an order that replaces a run": Scene(
        steps=(
            rule_dropped(rule(MANUAL, while_running="replace")),
            fired("1"),
            becomes(
                0, JobState.RUNNING
            ),  # a run to whose submission nobody answered would be ended without a job
            waited(1),
            fired("2"),
            TICK,
            *finished(1),
        ),
        ends=(RunState.CANCELLED, RunState.SUCCEEDED),
        jobs=2,
        firings=(1, 2),
    ),
}
