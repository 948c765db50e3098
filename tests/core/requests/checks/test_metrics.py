"""A goal that is the opposite of what its metric's name asks for is warned of."""

from typing import Any

import pytest

from tests.core.roles import TUNING, accepted, request
from trainmaster.orchestrator.core.requests.checks.metrics import is_share, usual_goal
from trainmaster.orchestrator.core.requests.spec import Goal

HIGHER = [
    "accuracy", "val_accuracy", "eval/accuracy", "test-acc", "Accuracy", "valAccuracy", "top_5_accuracy", "acc1", "AUC",
    "roc_auc", "f1", "F1", "f1_macro", "val/f1-score", "precision", "recall@5", "mAP", "mAP50-95", "map_50", "mean_iou",
    "IoU", "bleu", "BLEU4", "rougeL", "r2", "hits@10", "log_likelihood", "psnr", "average_precision",
]  # fmt: skip
LOWER = [
    "loss", "val_loss", "valLoss", "train/loss", "eval-loss", "log_loss", "LogLoss", "cross_entropy", "rmse", "RMSE",
    "val_rmse", "mean_absolute_error", "mae", "mse", "mape", "sMAPE", "perplexity", "ppl", "wer", "cer", "word_error_rate",
    "fid", "FID50k", "top_1_error", "err", "brier", "kl_divergence", "nll",
]  # fmt: skip
NEITHER = [
    "score", "metric", "accuracy_loss", "neg_mean_squared_error", "negative_log_likelihood", "neg_log_loss", "steps",
    "learning_rate", "throughput", "glossary", "mapping", "closs", "erratic", "", "损失", "x" * 256,
]  # fmt: skip


def warned(**changes: Any) -> dict[str, str]:
    return {found.path: str(found) for found in accepted(request(**changes)).warnings}


@pytest.mark.parametrize(
    ("names", "goal"), [(HIGHER, Goal.MAXIMIZE), (LOWER, Goal.MINIMIZE), (NEITHER, None)]
)
def test_a_name_may_say_which_values_are_better(names: list[str], goal: Goal | None) -> None:
    assert {name: usual_goal(name) for name in names} == dict.fromkeys(names, goal)


@pytest.mark.parametrize(
    ("metric", "share"),
    [("val_accuracy", True), ("wer", True), ("mAP", True), ("val_loss", False), ("rmse", False), ("psnr", False),
     ("score", False), ("accuracy_loss", False)],
)  # fmt: skip
def test_only_some_are_shares(metric: str, share: bool) -> None:
    assert is_share(metric) is share


@pytest.mark.parametrize(
    ("metric", "goal", "better"), [("val_loss", "maximize", "lower"), ("auc", "minimize", "higher")]
)
def test_the_worst_champion_is_warned_of(metric: str, goal: str, better: str) -> None:
    ((path, text),) = warned(champion={"metric": metric, "goal": goal}).items()
    assert path == "$.champion.goal"
    assert (
        f"{metric} is usually better when it is {better}, so the worst value would win; found '{goal}'"
        in text
    )
    assert f"write goal: {'minimize' if goal == 'maximize' else 'maximize'}" in text


def test_the_worst_trials_are_warned_of() -> None:
    metrics = [{"id": "accuracy", "goal": "maximize"}, {"id": "loss", "goal": "maximize"}]
    assert warned(tuning={**TUNING, "metrics": metrics}).keys() == {"$.tuning.metrics[1].goal"}


def test_goals_that_fit_are_not() -> None:
    assert warned(champion={"metric": "val_loss", "goal": "minimize"}, tuning=TUNING) == {}
    assert warned(champion={"metric": "score", "goal": "minimize"}) == {}
