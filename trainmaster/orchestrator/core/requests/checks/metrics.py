"""Metrics by their names: whether higher or lower values are usually better, and which of them are shares."""

import re

from trainmaster.orchestrator.core.requests.spec import Goal

_HIGHER_SHARES = re.compile(
    "acc|accuracy|ap|auc|auprc|auroc|bleu|dice|f1|hits|iou|jaccard|kappa|map|mcc|miou|ndcg|precision|r2|recall|rouge|"
    "sensitivity|specificity|ssim"
)
_LOWER_SHARES = re.compile("cer|eer|fnr|fpr|mape|smape|wer")
_HIGHER = re.compile(f"{_HIGHER_SHARES.pattern}|likelihood|psnr|reward")
_LOWER = re.compile(
    f"{_LOWER_SHARES.pattern}|brier|crps|deviance|divergence|entropy|err|errors?|fid|kl|loss|losses|mae|mse|msle|nll|"
    "perplexity|ppl|regret|rmse|rmsle"
)
_TURNED = re.compile("minus|neg|negated|negative")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORD = re.compile(r"[a-z]+[0-9]*")


def usual_goal(metric: str) -> Goal | None:
    """What the metric's name asks for: `val_loss` to minimize; None for a name that says neither, or both."""
    higher, lower = _has_word(metric, _HIGHER), _has_word(metric, _LOWER)
    if higher is lower or _has_word(metric, _TURNED):
        return None
    return Goal.MAXIMIZE if higher else Goal.MINIMIZE


def is_share(metric: str) -> bool:
    """Whether the name is that of a share, which some programs write as 0.91 and others as 91."""
    shares = _LOWER_SHARES if usual_goal(metric) is Goal.MINIMIZE else _HIGHER_SHARES
    return usual_goal(metric) is not None and _has_word(metric, shares)


def _has_word(metric: str, pattern: re.Pattern[str]) -> bool:
    """Whether a word of the name, with or without a number at its end, is one of these: `mAP50`, `val/F1`, `recall@5`."""
    words = {*_WORD.findall(metric.lower()), *map(str.lower, _CAMEL.findall(metric))}
    return any(pattern.fullmatch(form) for word in words for form in (word, word.rstrip("0123456789")))
