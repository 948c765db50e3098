"""What a line of a log reports of a training: its place and its metrics, in the forms that frameworks print anyway.

Read are the events of docs/reference/replica.md, other JSON objects with an `epoch` or a `step`, what Keras, Lightning,
the Trainer of Hugging Face, LightGBM and XGBoost print, and lines that begin with `epoch 3`. The work is bounded by the
length of the line: no pattern is searched for.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from trainmaster.client.terminal import without_styling

TEXT_MAX_CHARS, LINE_MAX_CHARS = 256 * 1024, 2000
"""Of an entry, and of each version of a line that is written again and again."""
METRICS_MAX, NAME_MAX_CHARS, WORDS_MAX = 30, 60, 2
MOST, Y_MAX = 2**53, 1e300
"""Larger counts are not exact in JSON, and no chart shows larger values."""
THROUGHPUT = "examples_per_s"
STARTED, PROGRESS = "train_started", "train_progress"
_EVENTS = (STARTED, PROGRESS, "epoch_finished", "evaluated")
_NO_METRICS = frozenset(
    {"epoch", "epochs", "step", "global_step", "steps_per_epoch", "metrics", "seconds", "time", "timestamp"}
    | {"trial", "rank", "v_num", "from", "to", "in", "at", "of", "after", "took"}
)
_NO_METRIC_ENDS = ("_runtime", "_per_second")
"""Of names in the lines of the Trainer."""
_SAVED = "saving model"
"""In what Keras and Lightning print about a checkpoint, which repeats metrics in a sentence."""
_BREAKS = str.maketrans({**dict.fromkeys(",;|()[]{}", " - "), **dict.fromkeys("=:", " ")})

Pairs = Iterable[Iterable[str]]


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
    if line.startswith("{'") or ("%|" in line and "{'" in line):
        return _report_of_dictionary(line[line.index("{'") :])
    if line[:1].isdigit():
        return _report_of_keras(line)
    if line[:1] == "[" and line[1:2].isdigit():
        return _report_of_round(line)
    if "epoch" not in line[:20].casefold() or _SAVED in line:
        return None
    return _report_of_bar(line) if "it/s" in line or "s/it" in line else _report_of_epoch(line)


def _report_of_keras(line: str) -> Report | None:
    """`10/100 ━━━ 3s 5ms/step - accuracy: 0.5 - loss: 1.2 - val_loss: 1.3`."""
    place, *parts = line.split(" - ")
    step, _, steps = place.partition(" ")[0].partition("/")
    metrics = _metrics(pair.split(": ", 1) for pair in parts if ": " in pair)
    if not metrics or _count(step) is None:
        return None
    return Report(metrics=metrics, step=_count(step), steps=_count(steps))


def _report_of_round(line: str) -> Report | None:
    """`[10]⇥valid_0's auc: 0.9` of LightGBM, `[10]⇥valid-auc:0.9` of XGBoost."""
    place, _, rest = line[1:].partition("]")
    step = _count(place)
    metrics = _metrics(pair.rpartition(":")[::2] for pair in rest.split("\t")) if step is not None else {}
    return Report(metrics=metrics, step=step) if metrics else None


def _report_of_dictionary(text: str) -> Report | None:
    """`{'loss': 0.5, 'epoch': 1.0}` of the Trainer, whose newer versions quote numbers, and `trainer.logged_metrics`."""
    pairs = [pair.partition("': ")[::2] for pair in text.partition("}")[0].split(", ", 2 * METRICS_MAX)]
    values = {name.strip("{'"): value.strip("'").removeprefix("tensor(").rstrip(")") for name, value in pairs}
    epoch, step = parse_number(values.get("epoch", "")), _count(values.get("step", ""))
    is_known = epoch is not None or step is not None or "': tensor(" in text
    metrics = _metrics(values.items()) if is_known else {}
    return Report(metrics=metrics, epoch=epoch, step=step) if metrics else None


def _report_of_bar(line: str) -> Report | None:
    """`Epoch 0: 100%|███| 25/25 [01:54<00:00, 0.22it/s, train_loss=1.31]` of Lightning, which counts epochs from 0."""
    first, slash, last = line.partition(":")[0].rpartition(" ")[2].partition("/")
    place, _, rest = line.rpartition("| ")[2].partition(" [")
    epoch, step, steps = _count(first), _count(place.partition("/")[0]), _count(place.partition("/")[2])
    if epoch is None or step is None:
        return None
    metrics = _metrics(pair.split("=", 1) for pair in rest.partition("]")[0].split(", ") if "=" in pair)
    epoch += not slash  # `Epoch 1/5` is a script's own
    return Report(metrics=metrics, epoch=epoch, epochs=_count(last), step=step, steps=steps)


def _report_of_epoch(line: str) -> Report | None:
    """`Epoch 2/5`, with which Keras begins one, or `epoch 2: loss 0.5, accuracy 0.9` of a script, which ends one."""
    words = line.translate(_BREAKS).split()
    start = next((at for at, word in enumerate(words[:3]) if word.casefold() == "epoch"), len(words))
    place, *rest = [word for word in words[start + 1 : start + 3] if word != "-"] or [""]
    first, _, last = place.partition("/")
    if (epoch := _count(first)) is None:
        return None
    metrics = _metrics(_named_numbers([*rest, *words[start + 3 :]]))
    return Report(metrics=metrics, epoch=epoch, epochs=_count(last), step=None if metrics else 0)


def _named_numbers(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each number behind one or two words: `train loss 0.5` is `train_loss`."""
    name: list[str] = []
    for word in words:
        if parse_number(word) is None:
            name = [] if word == "-" else [*name, word]
            continue
        if len(name) <= WORDS_MAX:
            yield "_".join(name), word
        name = []


def _metrics(pairs: Pairs) -> dict[str, float]:
    return _kept((name, parse_number(value)) for name, value in pairs)


def _kept(values: Iterable[tuple[object, float | None]]) -> dict[str, float]:
    """The finite ones that measure a model, by name."""
    named = ((str(name).strip()[:NAME_MAX_CHARS], value) for name, value in values if value is not None)
    kept = (
        (name, value)
        for name, value in named
        if name and name not in _NO_METRICS and not name.endswith(_NO_METRIC_ENDS)
    )
    return dict(islice(kept, METRICS_MAX))


def parse_number(text: str) -> float | None:
    """The finite number that the text is. Of a mean with its deviation, `0.94 + 0.02` or `0.94+0.02`, the mean."""
    mean = text if "e+" in text else text.partition("+")[0]
    try:
        return number(float(mean[:NAME_MAX_CHARS]))
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
