"""Who becomes champion, who stays, and who comes back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.champions.champion import KEPT_REIGNS, KEPT_VERDICTS, Cause, Champion
from trainmaster.orchestrator.core.champions.copy import ModelCopy
from trainmaster.orchestrator.core.champions.promotion import (
    after_challenge,
    after_rollback,
    is_challenger,
)
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.requests.spec import ChampionTerms, Goal, JobSpec, spec_from
from trainmaster.orchestrator.core.runs.end import Model, ModelData
from trainmaster.orchestrator.core.runs.record import AcceptedRequest, Original, RunRecord, Source, Step
from trainmaster.orchestrator.core.runs.states import RunState

ORIGINAL = Original(uri="gs://ledger/submitted/m/0.json", sha256="0" * 64, dialect="trainmaster")
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DATA = ModelData(name="cassava", version="0.1.0", train_split="train", evaluation_split="validation")
TERMS = ChampionTerms(metric="val_accuracy", goal=Goal.MAXIMIZE)


def spec(terms: ChampionTerms | None = TERMS) -> JobSpec:
    document = {"model_name": "m", "image": "i@sha256:" + "a" * 64, "cluster": {"chief": {"machine": "n1"}}}
    return replace(spec_from(document), champion=terms)


def record(
    run_id: str, value: float | None, *, data: ModelData | None = DATA, state: RunState = RunState.SUCCEEDED
) -> RunRecord:
    metrics = {} if value is None else {"val_accuracy": value}
    return RunRecord(
        run_id=run_id,
        state=state,
        source=Source(kind="upload", event_id="e", event_time=START, received_at=START),
        attempt="a",
        updated_at=START,
        history=(Step(state=state, at=START),),
        request=AcceptedRequest(
            document={}, original=ORIGINAL, model_name="m", output_uri=f"gs://models/m/{run_id}"
        ),
        model=Model(uri=f"gs://models/m/{run_id}/model/", metrics=metrics, dataset=data),
    )


def challenger(
    run_id: str, value: float | None, *, terms: ChampionTerms = TERMS, data: ModelData | None = DATA
) -> tuple[RunRecord, JobSpec]:
    return record(run_id, value, data=data), spec(terms)


def judged(champion: Champion | None, challenger: tuple[RunRecord, JobSpec], now: datetime) -> Champion:
    """The document after the challenge, where a model that wins is copied."""
    copy = ModelCopy(uri=f"gs://champions/m/{challenger[0].run_id}/", files=())
    return present(after_challenge(champion, *challenger, now, copy, approve_within=timedelta(7)))


def reigning(value: float = 0.8) -> Champion:
    return judged(None, challenger("first", value), START)


def verdict(champion: Champion) -> tuple[bool, str]:
    return champion.considered[-1].promoted, champion.considered[-1].reason


def run_of(champion: Champion) -> str:
    return present(champion.current).run_id


def test_the_first_challenger_is_champion_without_a_comparison() -> None:
    champion = reigning(0.1)
    assert run_of(champion) == "first"
    assert verdict(champion) == (True, "the first, with val_accuracy 0.1")


@pytest.mark.parametrize(
    ("value", "goal", "margin", "promoted"),
    [
        (0.81, Goal.MAXIMIZE, 0.0, True),
        (0.80, Goal.MAXIMIZE, 0.0, False),
        (0.79, Goal.MAXIMIZE, 0.0, False),
        (0.85, Goal.MAXIMIZE, 0.1, False),
        (0.95, Goal.MAXIMIZE, 0.1, True),
        (0.9, Goal.MAXIMIZE, 0.1, True),
        (0.79, Goal.MINIMIZE, 0.0, True),
        (0.80, Goal.MINIMIZE, 0.0, False),
        (0.75, Goal.MINIMIZE, 0.1, False),
        (float("nan"), Goal.MAXIMIZE, 0.0, False),
        (float("inf"), Goal.MAXIMIZE, 0.0, False),
        (None, Goal.MAXIMIZE, 0.0, False),
    ],
)
def test_only_a_better_run_is_promoted(
    value: float | None, goal: Goal, margin: float, promoted: bool
) -> None:
    terms = ChampionTerms(metric="val_accuracy", goal=goal, margin=margin)
    before = judged(None, challenger("first", 0.8, terms=terms), START)
    after = judged(before, challenger("second", value, terms=terms), START)
    assert run_of(after) == ("second" if promoted else "first")
    assert after.considered[-1].promoted is promoted
    assert after.considered[-1].reason


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (challenger("x", 0.9, terms=ChampionTerms(metric="val_loss", goal=Goal.MAXIMIZE)), "no metric 'val_loss'"),
        (challenger("x", 0.9, terms=ChampionTerms(metric="val_accuracy", goal=Goal.MINIMIZE)), "cannot be compared"),
        (challenger("x", 0.9, data=replace(DATA, evaluation_split="test")), "split test, the champion"),
        (challenger("x", 0.9, data=replace(DATA, name="horses")), "on horses, split"),
        (challenger("x", 0.9, data=None), "an unnamed data set"),
    ],
)  # fmt: skip
def test_an_incomparable_run_leaves_the_champion_and_says_why(
    other: tuple[RunRecord, JobSpec], said: str
) -> None:
    after = judged(reigning(), other, START)
    assert run_of(after) == "first"
    assert said in after.considered[-1].reason


def test_a_newer_version_of_the_same_data_set_may_be_compared() -> None:
    newer = challenger("second", 0.9, data=replace(DATA, version="0.2.0"))
    assert run_of(judged(reigning(), newer, START)) == "second"


def test_a_run_is_considered_once() -> None:
    champion = reigning()
    again = judged(champion, challenger("first", 0.99), START + timedelta(days=1))
    assert again is champion


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.SUCCEEDED])
def test_only_runs_that_succeeded_are_challengers(state: RunState) -> None:
    assert not is_challenger(record("r", 0.9, state=state), spec())


def test_a_request_without_terms_makes_no_challenger() -> None:
    assert not is_challenger(record("r", 0.9), spec(terms=None))


@given(st.permutations([0.1, 0.5, 0.5, 0.7, 0.9, 0.3]))
def test_in_any_order_the_best_ends_as_champion_and_the_history_only_rises(values: list[float]) -> None:
    champion: Champion | None = None
    for number, value in enumerate(values):
        champion = judged(champion, challenger(f"run-{number}", value), START)
    assert champion is not None
    assert present(champion.current).value == 0.9
    reigns = [reign.value for reign in champion.history]
    assert reigns == sorted(set(reigns))
    assert [reign.number for reign in champion.history] == list(range(1, len(reigns) + 1))


def test_a_rollback_restores_the_previous_champion_and_keeps_the_history() -> None:
    champion = judged(reigning(), challenger("second", 0.9), START)
    back = instance_of(Champion, after_rollback(champion, None, order_id="order", now=START))
    assert run_of(back) == "first"
    assert [(reign.number, reign.run_id, reign.cause) for reign in back.history] == [
        (1, "first", Cause.PROMOTION),
        (2, "second", Cause.PROMOTION),
        (3, "first", Cause.ROLLBACK),
    ]
    assert after_rollback(back, None, order_id="order", now=START) is back


def test_rolling_back_twice_goes_back_two_champions() -> None:
    champion = judged(judged(reigning(), challenger("second", 0.9), START), challenger("third", 0.95), START)
    for order_id in ("one", "two"):
        champion = instance_of(Champion, after_rollback(champion, None, order_id=order_id, now=START))
    assert run_of(champion) == "first"


def test_after_a_rollback_a_challenger_is_compared_with_the_champion_that_came_back() -> None:
    champion = judged(reigning(0.8), challenger("second", 0.9), START)
    back = instance_of(Champion, after_rollback(champion, "first", order_id="order", now=START))
    assert run_of(judged(back, challenger("third", 0.85), START)) == "third"


@pytest.mark.parametrize(
    ("to_run", "said"),
    [(None, "no champion before it"), ("first", "is already the champion"), ("x", "x was never champion")],
)
def test_a_rollback_to_nothing_says_why(to_run: str | None, said: str) -> None:
    refused = instance_of(str, after_rollback(reigning(), to_run, order_id="order", now=START))
    assert said in refused


def test_the_document_stays_bounded_and_comes_back_from_json() -> None:
    champion: Champion | None = None
    for number in range(KEPT_REIGNS + 5):
        champion = judged(champion, challenger(f"run-{number}", float(number)), START)
    assert champion is not None
    assert (len(champion.history), len(champion.considered)) == (KEPT_REIGNS, KEPT_VERDICTS)
    assert decoded(Champion, encoded(champion)) == champion
    # Its verdict is kept no longer, its reign is: a late repetition changes nothing.
    assert judged(champion, challenger("run-20", 1e9), START) is champion


def test_the_lineage_names_what_is_known() -> None:
    champion = reigning()
    lineage = present(champion.current).lineage
    assert lineage.image_digest == "sha256:" + "a" * 64
    assert (lineage.dataset, lineage.dataset_version) == ("cassava", "0.1.0")


def contested(metric: str, goal: Goal, before: float, value: float, margin: float = 0.0) -> tuple[bool, str]:
    """The verdict on a challenger with this value, where the champion has the other."""
    terms = ChampionTerms(metric=metric, goal=goal, margin=margin)

    def of(run_id: str, measured: float) -> tuple[RunRecord, JobSpec]:
        ended, request = challenger(run_id, None, terms=terms)
        model = replace(present(ended.model), metrics={metric: measured})
        return replace(ended, model=model), request

    first = judged(None, of("first", before), START)
    return verdict(judged(first, of("second", value), START + timedelta(hours=1)))


@pytest.mark.parametrize(
    ("metric", "goal", "before", "value"),
    [
        ("val_accuracy", Goal.MAXIMIZE, 0.91, 91.3),
        ("mAP", Goal.MAXIMIZE, 0.02, 35.0),
        ("f1", Goal.MAXIMIZE, 1.0, 99.0),
        ("wer", Goal.MINIMIZE, 8.4, 0.081),
        ("mape", Goal.MINIMIZE, 100.0, 0.9),
    ],
)
def test_a_share_in_another_unit_is_held_with_its_reason(
    metric: str, goal: Goal, before: float, value: float
) -> None:
    promoted, reason = contested(metric, goal, before, value)
    assert not promoted
    assert reason.startswith(
        f"{metric} {value:g} seems to be in another unit than the champion's {before:g}, "
    )


@pytest.mark.parametrize(
    ("metric", "goal", "before", "value"),
    [
        ("val_loss", Goal.MINIMIZE, 10.0, 0.05),
        ("rmse", Goal.MINIMIZE, 91.0, 0.91),
        ("score", Goal.MAXIMIZE, 0.91, 91.3),
        ("psnr", Goal.MAXIMIZE, 0.5, 40.0),
        ("accuracy", Goal.MAXIMIZE, 0.01, 0.97),
        ("accuracy", Goal.MAXIMIZE, 1.2, 91.3),
        ("accuracy", Goal.MAXIMIZE, 40.0, 91.3),
        ("wer", Goal.MINIMIZE, 30.0, 2.0),
        ("r2", Goal.MAXIMIZE, -5.0, 0.8),
        ("accuracy", Goal.MAXIMIZE, 0.0, 91.3),
    ],
)
def test_a_large_step_in_one_unit_is_promoted(metric: str, goal: Goal, before: float, value: float) -> None:
    assert contested(metric, goal, before, value) == (True, f"{metric} {value:g} beats {before:g}")


def test_a_difference_in_the_fifth_digit_is_said_to_be_noise() -> None:
    promoted, reason = contested("accuracy", Goal.MAXIMIZE, 0.912341, 0.912352)
    assert promoted
    assert reason == "accuracy 0.912352 beats 0.912341 by 1e-05, which is likely noise: set champion.margin"
    assert contested("accuracy", Goal.MAXIMIZE, 0.9123, 0.9125) == (True, "accuracy 0.9125 beats 0.9123")
    assert contested("accuracy", Goal.MAXIMIZE, 0.912341, 0.912352, margin=1e-6) == (
        True,
        "accuracy 0.912352 beats 0.912341",
    )
    assert contested("loss", Goal.MINIMIZE, 0.0, -1e-9) == (True, "loss -1e-09 beats 0")
