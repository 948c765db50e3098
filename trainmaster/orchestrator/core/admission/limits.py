"""Which limits a run falls under, each a set of numbered slots that exactly the runs meant share."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainmaster.orchestrator.core.policy.admission import Limit
from trainmaster.orchestrator.core.policy.policy import Policy, matches

_PLAIN = re.compile(r"[a-z0-9_-]{1,63}")
_HASH_CHARS = 20


@dataclass(frozen=True, kw_only=True)
class SlotSet:
    """Slots 0 to `slots` - 1 under a name that is one path component; `text` says the same as the policy does."""

    name: str
    slots: int
    text: str = field(default="", compare=False)


def limits_of(policy: Policy | None, model_name: str, labels: Mapping[str, str]) -> tuple[SlotSet, ...]:
    """The slot sets of which the run needs a slot each, sorted by name; empty where nothing limits it.

    The name says whom the limit is for and not how many, so slots stay taken when the policy's number changes.
    Different runs are meant by different names; limits for the same ones are one set, the smaller number holds.
    """
    sets: dict[str, int] = {}
    texts: dict[str, str] = {}
    for limit in policy.admission.limits if policy is not None else ():
        for name, text in _names(limit, model_name, labels):
            texts[name] = text
            sets[name] = min(limit.jobs, sets.get(name, limit.jobs))
    return tuple(SlotSet(name=name, slots=sets[name], text=texts[name]) for name in sorted(sets))


def _names(limit: Limit, model_name: str, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The name of the limit's set for this run, if the run is meant, and the same in the policy's words."""
    if limit.per_model:
        yield _name("model", model_name), f"of the model {model_name}"
    elif limit.per_label is not None:
        if limit.per_label in labels:
            value = labels[limit.per_label]
            yield _name("label", limit.per_label, value), f"of the label {limit.per_label}: {value}"
    elif limit.model is not None:
        if matches(limit.model, model_name):
            several = "models" if "*" in limit.model else "model"
            yield _name(several, limit.model), f"of the {several} {limit.model}"
    elif limit.labels:
        if all(labels.get(key) == value for key, value in limit.labels.items()):
            pairs = sorted(limit.labels.items())
            labelled = ", ".join(f"{key}: {value}" for key, value in pairs)
            yield _name("label", *(part for pair in pairs for part in pair)), f"of the label {labelled}"
    else:
        yield "all", "of all runs"


def _name(kind: str, *parts: str) -> str:
    """`label.team.blue`: a '.' is in no label and no model's name; a part with anything odd becomes its hash."""
    return ".".join([kind, *map(_part, parts)])


def _part(text: str) -> str:
    # No plain part has a capital, so no hash is anybody's name.
    return text if _PLAIN.fullmatch(text) else f"X{hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]}"
