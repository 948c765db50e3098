"""Scenarios: the deliveries of each, and the result they must have.

Each runs once without disruption to record its calls, and then once for each disruption of each call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from tests.contract.retraining import DATA, IMAGE, MANUAL, NEW_DATA, SMALL, rule
from tests.contract.rooms import TWO_REGIONS
from tests.contract.simulation.steps import (
    RULE_REMOVED,
    TICK,
    Step,
    approved,
    becomes,
    cancelled,
    cancelled_group,
    cancelled_late,
    cancels_late,
    crashed_with_two,
    data_arrived,
    data_deleted,
    deleted,
    finished,
    fired,
    later,
    logged,
    lost,
    noticed,
    overwritten,
    policy_set,
    published,
    pushed,
    rolled_back,
    rule_dropped,
    saved,
    scored,
    set_denied,
    set_full,
    stocked_out,
    study_finished,
    succeeded,
    too_fast,
    trained,
    uploaded,
    uploaded_again,
    waited,
)
from tests.contract.world import ELSEWHERE, LEASE, REQUEST_RULES, request_rules_with
from trainmaster.orchestrator.core.policy.admission import Admission, Caps, Limit
from trainmaster.orchestrator.core.policy.registry import Registry, RegistryMode
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
EVALUATE = {"image": SMALL["image"], "data": f"gs://{DATA}/holdout.csv"}
EVALUATED = {**SMALL, "champion": {**CHALLENGER["champion"], "evaluate": EVALUATE}}
APPROVED = {**SMALL, "champion": {**CHALLENGER["champion"], "approve": True}}
OTHER = {**SMALL, "model_name": "other"}
MATRIX = {**SMALL, "matrix": {"rate": [0.1, 0.01], "depth": [3]}}
THREE = {**SMALL, "matrix": {"rate": [0.1, 0.01, 0.001]}}
WITH_FALLBACK = {**SMALL, "fallbacks": [{"region": ELSEWHERE}]}
OVERDUE = (
    cancels_late(),
    uploaded("a", {**WITH_FALLBACK, "scheduling": {"start_within_s": 1800}}),
    *later(1800),
)
"""A job that is given up; what follows is the service's."""
RETRIED = {**SMALL, "scheduling": {"retries": 2}}
LIMITED = request_rules_with(admission=Admission(limits=(Limit(jobs=1, per_model=True),)))
CAPPED = request_rules_with(admission=Admission(caps=Caps(runs_per_hour=1)))
DEAREST = Decimal("43.2")
"""What a run of SMALL may cost, a day of n1-standard-4: the one that ends costs 0.3."""
COSTLY = request_rules_with(admission=Admission(caps=Caps(cost_per_day=DEAREST + 1)))
REGISTERED = request_rules_with(admission=Admission(), registry=Registry(mode=RegistryMode.CHAMPIONS))
SMOKED = request_rules_with(admission=Admission(), registry=Registry(mode=RegistryMode.CHAMPIONS, smoke=True))
ENDED = (RunState.SUCCEEDED,)
QUARTERLY = {"schedule": {"cron": "*/15 * * * *"}}
SEEING = {**SMALL, "args": ["--seen=${data.count}"]}
NAMING = {**SMALL, "env": {"MANIFEST": "${data.manifest_uri:-}"}}
TWO_OBJECTS = {"objects": f"gs://{DATA}/**", "min_objects": 2, "quiet_s": 60}
NEW_IMAGE = {"new_image": {"repository": IMAGE, "tag": "latest"}}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`ends`: the states of the runs, in the order of their requests. `jobs`: the number of jobs at the end, by default
    one for each run that succeeds, and one if none does.

    `at_once`: max jobs active at the same time. `shows`: what the canonical request of every run contains.
    `firings`: the firing that started each run. `rule`: what the status of the rule contains. `named`: the objects that
    the manifests of all runs list, each once.
    """

    steps: tuple[Step, ...]
    ends: tuple[RunState, ...] = ENDED
    jobs: int | None = None
    champion: Mapping[str, float] = field(default_factory=dict)
    shows: Mapping[str, object] = field(default_factory=dict)
    firings: tuple[int, ...] = ()
    rule: Mapping[str, object] = field(default_factory=dict)
    named: tuple[str, ...] = ()
    request_rules: RequestRules = REQUEST_RULES
    at_once: int = 100

    @property
    def job_count(self) -> int:
        return max(1, self.ends.count(RunState.SUCCEEDED)) if self.jobs is None else self.jobs


SCENARIOS: Mapping[str, Scenario] = {
    "an upload whose job starts and succeeds": Scenario(
        steps=(
            uploaded("a"),
            uploaded("a"),
            becomes(0, JobState.RUNNING),
            logged(0),
            *finished(0),
            logged(0),
            TICK,
        )
    ),
    "a message with a key, and an end without a log entry": Scenario(
        steps=(published("k"), trained(0), TICK, published("k"))
    ),
    "three saves of a file, each before or after the event of another": Scenario(
        steps=(
            saved("a", 0),
            saved("a", 1),
            uploaded_again("a", 0),
            uploaded_again("a", 1),
            uploaded_again("a", 2),
            uploaded_again("a", 1),
            *finished(0),
            uploaded_again("a", 2),
            TICK,
        )
    ),
    "a file that is saved again, and put away after its run": Scenario(
        steps=(
            uploaded("a"),
            uploaded_again("a", 1),
            *finished(0),
            uploaded("done/a"),
            uploaded("done/a"),
            TICK,
        )
    ),
    "two documents with one key": Scenario(
        steps=(
            published("k"),
            waited(1),
            published("k", OTHER, message_id="2"),
            published("k"),
            *finished(0),
            published("k", OTHER, message_id="2"),
            TICK,
        ),
        ends=(RunState.SUCCEEDED, RunState.REJECTED),
    ),
    "a file with a matrix, and an order to cancel its runs": Scenario(
        steps=(uploaded("a", MATRIX), uploaded("a", MATRIX), cancelled_group(0), logged(0), logged(1), TICK),
        ends=(RunState.CANCELLED,) * 2,
        jobs=2,
    ),
    "a message with a matrix, beside which a cap leaves room for one more run": Scenario(
        steps=(
            published("k", MATRIX),
            *finished(0),
            *finished(1),
            waited(1),
            published("k", MATRIX),
            uploaded("a", MATRIX),
            TICK,
        ),
        ends=(*ENDED * 2, RunState.REJECTED),
        request_rules=request_rules_with(admission=Admission(caps=Caps(runs_per_hour=3))),
    ),
    "a matrix of which a crash left two runs, under a policy that refuses the others": Scenario(
        steps=(
            crashed_with_two("a", THREE),
            policy_set(request_rules_with(regions=(ELSEWHERE,))),
            uploaded("a", THREE),
            uploaded("a", THREE),
            *later(LEASE.total_seconds() + 1),
            *finished(0),
            TICK,
        ),
        ends=(RunState.FAILED, RunState.SUCCEEDED, RunState.REJECTED),
    ),
    "a matrix of which a crash left two runs, whose file was overwritten": Scenario(
        steps=(
            crashed_with_two("a", THREE),
            overwritten("a", OTHER),
            uploaded("a", THREE),
            *later(LEASE.total_seconds() + 1),
            *finished(0),
            *finished(1),
            TICK,
        ),
        ends=(*ENDED * 2, RunState.REJECTED),
    ),
    "an invalid request": Scenario(
        steps=(uploaded("a", {"model_name": "x"}), TICK), ends=(RunState.REJECTED,), jobs=0
    ),
    "a job that fails": Scenario(
        steps=(uploaded("a"), becomes(0, JobState.FAILED), waited(120), logged(0)), ends=(RunState.FAILED,)
    ),
    "a job that a user cancels": Scenario(
        steps=(uploaded("a"), becomes(0, JobState.CANCELLED), TICK, logged(0)), ends=(RunState.CANCELLED,)
    ),
    "a job that a user deletes": Scenario(
        steps=(uploaded("a"), deleted(0), *later(601)), ends=(RunState.FAILED,), jobs=0
    ),
    "an order to cancel a run that has a job": Scenario(
        steps=(uploaded("a"), cancelled(0), logged(0), cancelled(0), TICK), ends=(RunState.CANCELLED,)
    ),
    "an order to cancel a run that waits for quota, and a run behind it": Scenario(
        steps=(
            set_full(True),
            uploaded("a"),
            uploaded("b"),
            cancelled(0),
            set_full(False),
            *later(31),
            *finished(0),
        ),
        ends=(RunState.CANCELLED, RunState.SUCCEEDED),
    ),
    "no quota for a while": Scenario(
        steps=(
            set_full(True),
            uploaded("a"),
            *later(31),
            set_full(False),
            *later(61),
            *finished(0),
        )
    ),
    "a deployment without a right for a while": Scenario(
        steps=(
            set_denied(True),
            uploaded("a"),
            uploaded("b"),
            *later(31),
            set_denied(False),
            *later(61),
            *finished(0),
            *finished(1),
        ),
        ends=ENDED * 2,
    ),
    "a new run that admits the waiting run ahead of it too": Scenario(
        steps=(
            set_full(True),
            uploaded("a"),
            set_full(False),
            waited(31),
            uploaded("b"),
            *finished(0),
            *finished(1),
            TICK,
        ),
        ends=ENDED * 2,
    ),
    "a stockout, and the next candidate": Scenario(
        steps=(uploaded("a", WITH_FALLBACK), stocked_out(0), logged(0), logged(0), *finished(1), TICK),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "a stockout without a log entry, and a single candidate": Scenario(
        steps=(uploaded("a"), stocked_out(0), TICK, *later(31), trained(1), TICK), jobs=2
    ),
    "no quota for any candidate, then a stockout and the second candidate": Scenario(
        steps=(
            set_full(True),
            uploaded("a", WITH_FALLBACK),
            set_full(False),
            *later(31),
            stocked_out(0),
            logged(0),
            *finished(1),
        ),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "a job that does not start, and the next candidate once it is cancelled": Scenario(
        steps=(*OVERDUE, logged(0), cancelled_late(0), logged(0), logged(0), *finished(1), TICK),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "a job that does not start, whose cancellation is seen by a tick only": Scenario(
        steps=(*OVERDUE, TICK, cancelled_late(0), TICK, TICK, trained(1), TICK, logged(0)),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "a job that starts while it is being cancelled, and continues": Scenario(
        steps=(*OVERDUE, becomes(0, JobState.RUNNING), logged(0), TICK, *finished(0), TICK),
        request_rules=TWO_REGIONS,
    ),
    "a job that starts while it is being cancelled, and is cancelled nevertheless": Scenario(
        steps=(
            *OVERDUE,
            TICK,
            becomes(0, JobState.RUNNING),
            logged(0),
            cancelled_late(0),
            logged(0),
            TICK,
            *finished(1),
            TICK,
        ),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "a job that fails for lack of capacity while it is being cancelled": Scenario(
        steps=(*OVERDUE, stocked_out(0), logged(0), TICK, *finished(1), TICK),
        jobs=2,
        request_rules=TWO_REGIONS,
    ),
    "an order to cancel a run whose job is being given up": Scenario(
        steps=(*OVERDUE, cancelled(0), logged(0), cancelled_late(0), logged(0), TICK),
        ends=(RunState.CANCELLED,),
        request_rules=TWO_REGIONS,
    ),
    "a job that is deleted while it is being given up": Scenario(
        steps=(*OVERDUE, TICK, deleted(0), *later(601), TICK, trained(0), TICK),
        request_rules=TWO_REGIONS,
    ),
    "too many requests per minute": Scenario(steps=(too_fast(1), uploaded("a"), *later(31), *finished(0))),
    "one job of a model at a time, the second started by the end of the first": Scenario(
        steps=(uploaded("a"), uploaded("b"), uploaded("b"), *finished(0), TICK, *finished(1), TICK),
        ends=ENDED * 2,
        request_rules=LIMITED,
        at_once=1,
    ),
    "an order to cancel a run that waits for a limit": Scenario(
        steps=(uploaded("a"), uploaded("b"), cancelled(1), *finished(0), TICK),
        ends=(RunState.SUCCEEDED, RunState.CANCELLED),
        request_rules=LIMITED,
        at_once=1,
    ),
    "a stockout that frees its slot for another run": Scenario(
        steps=(
            uploaded("a"),
            uploaded("b"),
            stocked_out(0),
            logged(0),
            *finished(1),
            *later(31),
            trained(2),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=3,
        request_rules=LIMITED,
        at_once=1,
    ),
    "a job that is lost before its start is logged, and its run's next job": Scenario(
        steps=(uploaded("a", RETRIED), lost(0), logged(0), logged(0), *later(61), *finished(1), TICK),
        jobs=2,
    ),
    "two jobs that are lost while they run, one without a log entry, and a third that fails for good": Scenario(
        steps=(
            uploaded("a", RETRIED),
            becomes(0, JobState.RUNNING),
            logged(0),
            lost(0),
            TICK,
            *later(61),
            lost(1),
            logged(1),
            *later(301),
            becomes(2, JobState.RUNNING),
            TICK,
            lost(2),
            logged(2),
        ),
        ends=(RunState.FAILED,),
        jobs=3,
    ),
    "a lost job that frees its slot for another run": Scenario(
        steps=(
            uploaded("a", RETRIED),
            uploaded("b"),
            lost(0),
            logged(0),
            *later(181),
            *finished(1),
            *later(61),
            trained(2),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=3,
        request_rules=LIMITED,
        at_once=1,
    ),
    "a run of a higher priority that arrives while the slot is another's": Scenario(
        steps=(
            uploaded("a"),
            uploaded("b"),
            *finished(0),
            uploaded("c", {**SMALL, "priority": 90}),
            *later(181),
            *later(61),
            *finished(1),
            *later(61),
            *finished(2),
        ),
        ends=ENDED * 3,
        request_rules=LIMITED,
        at_once=1,
    ),
    "a cap that rejects the second run of an hour": Scenario(
        steps=(uploaded("a"), uploaded("b"), uploaded("b"), *finished(0), TICK),
        ends=(RunState.SUCCEEDED, RunState.REJECTED),
        request_rules=CAPPED,
    ),
    "a cap on cost that rejects a run while another may cost more than it does in the end": Scenario(
        steps=(uploaded("a"), uploaded("b"), *finished(0), TICK, uploaded("c"), *finished(1), TICK),
        ends=(RunState.SUCCEEDED, RunState.REJECTED, RunState.SUCCEEDED),
        request_rules=COSTLY,
    ),
    "a study": Scenario(steps=(uploaded("a", TUNED), study_finished(0), logged(0), TICK)),
    "two challengers that claim to be perfect, and that an evaluation scores": Scenario(
        steps=(
            *succeeded("a", EVALUATED, 0, 1.0),
            TICK,
            scored(1, challenger=0.6),
            logged(1),
            *succeeded("b", EVALUATED, 2, 1.0),
            scored(3, challenger=0.4, champion=0.5),
            logged(3),
            logged(3),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=4,
        champion={"cassava": 0.6},
    ),
    "an evaluation that fails, one that is seen by a tick only, and one that is cancelled": Scenario(
        steps=(
            *succeeded("a", EVALUATED, 0, 1.0),
            becomes(1, JobState.FAILED),
            logged(1),
            *succeeded("b", EVALUATED, 2, 1.0),
            TICK,
            scored(3, challenger=0.4),
            TICK,
            *succeeded("c", EVALUATED, 4, 1.0),
            becomes(5, JobState.RUNNING),
            cancelled(2),
            TICK,
        ),
        ends=ENDED * 3,
        jobs=6,
        champion={"cassava": 0.4},
    ),
    "a challenger that is approved, one that a newer one replaces, and one that is rejected": Scenario(
        steps=(
            *succeeded("a", APPROVED, 0, 0.5),
            approved("yes"),
            approved("yes"),
            TICK,
            *succeeded("b", APPROVED, 1, 0.6),
            *succeeded("c", APPROVED, 2, 0.7),
            TICK,
            approved("no", reject=True),
            TICK,
        ),
        ends=ENDED * 3,
        champion={"cassava": 0.5},
    ),
    "two challengers, and a rollback": Scenario(
        steps=(
            *succeeded("a", CHALLENGER, 0, 0.5),
            TICK,
            *succeeded("b", CHALLENGER, 1, 0.7),
            TICK,
            rolled_back("back"),
            TICK,
        ),
        ends=ENDED * 2,
        champion={"cassava": 0.5},
    ),
    "data that fires a rule": Scenario(
        steps=(
            rule_dropped(rule()),
            *(data_arrived(f"{number}.jpg") for number in range(4)),
            TICK,
            *later(61),
            *finished(0),
        ),
        shows={"args": ["--seen=4"]},
        firings=(1,),
        rule={"state": "accepted", "firings": 1},
    ),
    "two folders that fire one after the other, and an object that is deleted before": Scenario(
        steps=(
            rule_dropped(rule({"new_data": {**TWO_OBJECTS, "each": "folder"}}, request=NAMING)),
            *(data_arrived(name) for name in ("a/1", "b/1", "c/2")),
            data_deleted("c/2"),
            TICK,
            *(data_arrived(name) for name in ("b/2", "c/1", "a/2")),
            TICK,
            *later(61),
            *finished(0),
            *later(1),
            *finished(1),
            TICK,
        ),
        ends=ENDED * 2,
        firings=(1, 2),
        named=("a/1", "a/2", "b/1", "b/2"),
    ),
    "objects that are listed, one of them moved before and after it was taken": Scenario(
        steps=(
            rule_dropped(rule({"new_data": TWO_OBJECTS}, request=NAMING)),
            data_arrived("in/1", b"one"),
            TICK,
            data_deleted("in/1"),
            data_arrived("out/1", b"one"),
            data_arrived("out/2", b"two"),
            *later(61),
            *finished(0),
            data_deleted("out/1"),
            data_arrived("done/1", b"one"),
            *later(61),
        ),
        firings=(1,),
        named=("out/1", "out/2"),
    ),
    "an image that fires a rule, announced twice": Scenario(
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
    "data and a time in all": Scenario(
        steps=(
            rule_dropped(rule({"all": [NEW_DATA, QUARTERLY]}, request=SEEING)),
            *(data_arrived(f"{number}.jpg") for number in range(4)),
            TICK,
            *later(900),
            *later(900),
            *finished(0),
        ),
        shows={"args": ["--seen=4"]},
        firings=(1,),
        rule={"state": "accepted", "firings": 1},
    ),
    "two signals in all, each delivered twice": Scenario(
        steps=(
            rule_dropped(rule({"all": [NEW_IMAGE, MANUAL]}, request={**SMALL, "image": "${image.uri}"})),
            pushed("a"),
            TICK,
            fired("1"),
            pushed("a"),
            fired("1"),
            TICK,
            *finished(0),
        ),
        shows={"image": f"{IMAGE}@sha256:{'a' * 64}"},
        firings=(1,),
        rule={"state": "accepted", "firings": 1},
    ),
    "a rule whose file is deleted after it fired": Scenario(
        steps=(rule_dropped(rule(MANUAL)), fired("1"), RULE_REMOVED, TICK, *finished(0)),
        firings=(1,),
        rule={"state": "retired"},
    ),
    "a firing that waits for the previous run to end": Scenario(
        steps=(
            rule_dropped(rule(MANUAL, while_running="queue_one")),
            fired("1"),
            waited(1),
            fired("2"),
            noticed(0),
            *finished(1),
        ),
        ends=ENDED * 2,
        firings=(1, 2),
    ),
    "an order that replaces the previous run": Scenario(
        steps=(
            rule_dropped(rule(MANUAL, while_running="replace")),
            fired("1"),
            # Until its submission is confirmed, the run would be cancelled without a job.
            becomes(0, JobState.RUNNING),
            waited(1),
            fired("2"),
            TICK,
            *finished(1),
        ),
        ends=(RunState.CANCELLED, RunState.SUCCEEDED),
        jobs=2,
        firings=(1, 2),
    ),
    "two champions whose versions are uploaded at once": Scenario(
        steps=(
            uploaded("a", CHALLENGER),
            uploaded("b", CHALLENGER),
            *finished(0),
            *finished(1, 0.6),
            *later(31),
            *later(31),
        ),
        ends=ENDED * 2,
        champion={"cassava": 0.6},
        request_rules=REGISTERED,
    ),
    "a champion that is rolled back, both registered": Scenario(
        steps=(
            *succeeded("a", CHALLENGER, 0),
            *later(31),
            *succeeded("b", CHALLENGER, 1, 0.6),
            *later(31),
            rolled_back("c"),
        ),
        ends=ENDED * 2,
        champion={"cassava": 0.5},
        request_rules=REGISTERED,
    ),
    "two champions whose models are tried out, the second one by a tick": Scenario(
        steps=(
            *succeeded("a", CHALLENGER, 0),
            *later(31),
            scored(1, model=1),
            logged(1),
            *succeeded("b", CHALLENGER, 2, 0.6),
            scored(3, model=1),
            *later(31),
        ),
        ends=ENDED * 2,
        jobs=4,
        champion={"cassava": 0.6},
        request_rules=SMOKED,
    ),
    "a champion whose model cannot be loaded, and a rollback": Scenario(
        steps=(
            *succeeded("a", CHALLENGER, 0),
            scored(1, model=1),
            logged(1),
            *later(31),
            *succeeded("b", CHALLENGER, 2, 0.6),
            waited(31),
            becomes(3, JobState.FAILED),
            logged(3),
            TICK,
            rolled_back("c"),
        ),
        ends=ENDED * 2,
        jobs=4,
        champion={"cassava": 0.5},
        request_rules=SMOKED,
    ),
    "a champion whose model cannot be loaded": Scenario(
        steps=(
            *succeeded("a", CHALLENGER, 0),
            scored(1, model=1),
            logged(1),
            *later(31),
            *succeeded("b", CHALLENGER, 2, 0.6),
            *later(31),
            becomes(3, JobState.FAILED),
            logged(3),
        ),
        ends=ENDED * 2,
        jobs=4,
        champion={"cassava": 0.6},
        request_rules=SMOKED,
    ),
    "a champion that is rolled back before its version is uploaded": Scenario(
        steps=(
            *succeeded("a", CHALLENGER, 0),
            *later(31),
            *succeeded("b", CHALLENGER, 1, 0.6),
            TICK,
            TICK,
            rolled_back("c"),
            *later(31),
        ),
        ends=ENDED * 2,
        champion={"cassava": 0.5},
        request_rules=REGISTERED,
    ),
}
