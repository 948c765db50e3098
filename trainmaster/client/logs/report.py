"""What a line of a log reports of a training: its place and its metrics, in the forms that frameworks print anyway.

Read are the events of docs/reference/replica.md, other JSON objects with an `epoch` or a `step`, what Keras, Lightning,
the Trainer of Hugging Face, LightGBM and XGBoost print, and lines that begin with `epoch 3`. The work is bounded by the
length of the line: no pattern of more than a character is searched for.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from trainmaster.client.terminal import without_styling

TEXT_MAX_CHARS, LINE_MAX_CHARS = 256 * 1024, 2000
"""Of an entry, and of each version of a line that is written again and again."""
METRICS_MAX, NAME_MAX_CHARS, WORDS_MAX = 30, 60, 2
PREFIX_MAX_CHARS = 120
_LEVELS = ("DEBUG", "INFO", "WARNING")
"""The prefix of a line that Python's `logging` wrote has one of them, as in `[…][__main__][INFO] - epoch=1 loss=0.5`."""
MOST, Y_MAX = 2**53, 1e300
"""Larger counts are not exact in JSON, and no chart shows larger values."""
THROUGHPUT = "examples_per_s"
STARTED = "train_started"
_EVENTS = (STARTED, "train_progress", "epoch_finished", "evaluated")
_NO_METRICS = frozenset(
    {"epoch", "epochs", "step", "global_step", "steps_per_epoch", "metrics", "seconds", "time", "timestamp"}
    | {"trial", "rank", "v_num", "device cuda", "from", "to", "in", "at", "of", "after", "took"}
)
_NO_METRIC_ENDS = ("_runtime", "_per_second")
"""Of names in the lines of the Trainer."""
_SAVED = "saving model"
"""In what Keras and Lightning print about a checkpoint, which repeats metrics in a sentence."""
_BREAKS = str.maketrans({**dict.fromkeys(",;|()[]{}", " - "), **dict.fromkeys("=:%", " ")})
_COMMA = re.compile(r"(?<=\d),(?=\d)")
"""In `0,1`, which some locales print for 0.1: no number that can be relied on."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One report. What it does not say is None."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    epoch: float | None = None
    """The epoch that the step is in, from 1; without a step, how many epochs are done."""
    epochs: int | None = None
    step: int | None = None
    """Of the epoch, from 1, if the steps of an epoch are known; else of the training."""
    steps: int | None = None
    """Of an epoch."""
    bar: float | None = None
    """The share of the steps of all epochs, as the bar of the Trainer says before its next dictionary says the epoch."""


def reports_in(payload: str | Mapping[str, Any], text: str) -> Iterator[Report]:
    """The reports in an entry's payload, or else in its text; several if a line was written again."""
    if not isinstance(payload, str) and (report := _report_of_document(payload)) is not None:
        yield report
        return
    for line in without_styling(text[:TEXT_MAX_CHARS]).replace("\b", "\r").splitlines():
        if len(line) <= LINE_MAX_CHARS and (report := _report_of_line(line.strip())) is not None:
            yield report


def _report_of_document(payload: Mapping[str, Any]) -> Report | None:  # Any: as a program wrote it
    event = payload.get("event")
    epoch, epochs, steps = (payload.get(key) for key in ("epoch", "epochs", "steps_per_epoch"))
    step = whole(payload.get("step", payload.get("global_step")))
    place = Report(epoch=number(epoch), epochs=whole(epochs), step=step, steps=whole(steps))
    if event == STARTED:
        return Report(epochs=place.epochs, steps=place.steps)
    if event not in _EVENTS and (event is not None or (place.epoch is None and step is None)):
        return None
    named = payload.get("metrics")
    values = named if isinstance(named, Mapping) else payload
    metrics = _kept((name, number(value)) for name, value in islice(values.items(), LINE_MAX_CHARS))
    if values is named and place.epoch is not None:  # of a whole epoch
        return Report(metrics=metrics, epoch=place.epoch, epochs=place.epochs)
    return replace(place, metrics=metrics)


def _report_of_line(line: str) -> Report | None:
    bar = _bar_of(line)
    if line.startswith("{'") or ("%|" in line and "{'" in line):
        report = _report_of_dictionary(line[line.index("{'") :])
        return replace(report, bar=bar) if report else None
    if bar is not None:
        return Report(bar=bar)
    start = line[:PREFIX_MAX_CHARS].casefold().find("epoch")
    if any(level in line[: max(start, 0)] for level in _LEVELS):
        line = line[start:]
    if "epoch" in line[:20].casefold():
        return None if _SAVED in line else _report_of_epoch(line)
    if line[:1] == "[":  # `[10]⇥valid_0's auc: 0.9` of LightGBM, `[10]⇥valid-auc:0.9` of XGBoost
        report = Report(step=_count(line[1:].partition("]")[0]))
    else:  # `10/100 ━━━ 3s 5ms/step - accuracy: 0.5 - loss: 1.2` of Keras
        step, _, steps = line.partition(" - ")[0].partition(" ")[0].partition("/")
        report = Report(step=_count(step), steps=_count(steps)) if steps else Report()
    metrics = _kept(_named_numbers(_words(line))) if report.step is not None else {}
    return replace(report, metrics=metrics) if metrics else None


def _bar_of(line: str) -> float | None:
    """The share of a bar without a title that is not full: ` 10%|█         | 3/30 [00:01<00:09,  2.9it/s]`."""
    percent, _, rest = line.partition("%|")
    done, _, total = rest.partition("| ")[2].partition(" ")[0].partition("/")
    count, most = _count(done), _count(total)
    return count / most if percent.isdigit() and count and most and count < most else None


def _report_of_dictionary(text: str) -> Report | None:
    """`{'loss': 0.5, 'epoch': 1.0}` of the Trainer, whose newer versions quote numbers, and `trainer.logged_metrics`."""
    values = dict(_named_numbers(_words(text.partition("}")[0].replace("tensor(", "").replace("'", " "))))
    epoch, step, metrics = values.get("epoch"), whole(values.get("step")), _kept(values.items())
    is_known = epoch is not None or step is not None or "': tensor(" in text
    return Report(metrics=metrics, epoch=epoch, step=step) if metrics and is_known else None


def _report_of_epoch(line: str) -> Report | None:
    """`Epoch 2/5`, with which Keras begins one, or `epoch 2: loss 0.5, accuracy 0.9` of a script, which ends one.

    With a step in it, `Epoch [1/5], Step [100/600], Loss: 0.5`, as in the bar of Lightning, which counts epochs from 0:
    `Epoch 0: 100%|███| 25/25 [01:54<00:00, 0.22it/s, loss=1.31]`.
    """
    is_bar = "it/s" in line or "s/it" in line
    words = _words(line.rpartition("]")[0] if is_bar else line)
    start = next((at for at, word in enumerate(words[:3]) if word.casefold() == "epoch"), len(words))
    place, *rest = [word for word in words[start + 1 :] if word != "-"] or [""]
    first, slash, last = place.partition("/")
    if (epoch := _count(first)) is None:
        return None
    if is_bar and not slash:
        epoch += 1
    fractions = (word.partition("/") for word in rest if "/" in word)
    step, _, steps = next((each for each in fractions if _count(each[0]) is not None), ("", "", ""))
    metrics = _kept(_named_numbers(words[start + 2 :]))
    return Report(
        metrics=metrics,
        epoch=epoch,
        epochs=_count(last),
        step=_count(step) if step or metrics else 0,
        steps=_count(steps),
    )


def _words(line: str) -> list[str]:
    return _COMMA.sub("_, ", line).translate(_BREAKS).split()


def _named_numbers(words: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Each number behind one or two words: `train loss 0.5`, `val_loss 0.6`. Of `0.94 + 0.02` and `0.94+0.02` the first."""
    name: list[str] = []
    for word in words:
        value = parse_number(word)
        if value is None:
            name = [] if word == "-" else [*name, word]
            continue
        if 0 < len(name) <= WORDS_MAX and name[0][0].isalpha():
            yield " ".join(name), value
        name = []


def _kept(values: Iterable[tuple[object, float | None]]) -> dict[str, float]:
    """The finite ones that measure a model, by name."""
    named = ((str(name)[:NAME_MAX_CHARS], value) for name, value in values if value is not None)
    kept = (pair for pair in named if not (pair[0] in _NO_METRICS or pair[0].endswith(_NO_METRIC_ENDS)))
    return dict(islice(kept, METRICS_MAX))


def parse_number(word: str) -> float | None:
    """The finite number that the word is, or begins with before a plus sign."""
    try:
        return number(float(word if "e+" in word else word.partition("+")[0]))
    except ValueError:
        return None


def number(value: object) -> float | None:
    """The value, if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < Y_MAX:
        return None
    return float(value)


def _count(text: str) -> int | None:
    return whole(parse_number(text))


def whole(value: object) -> int | None:
    """The number, if it can count steps. The service returns every number of a payload as a float."""
    found = number(value)
    return int(found) if found is not None and 0 <= found < MOST else None
