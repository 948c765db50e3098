"""What a first day says about each question that docs/reference/fidelity.md leaves open."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.client.logs.read import CHIEF_REPLICA
from trainmaster.deploy.doctor.hops import PASSED, WRITTEN

Seen = Mapping[str, Any]
"""The documents of a first day by name, as they are saved. Any: JSON."""


@dataclass(frozen=True)
class Question:
    """`settles` is a text of docs/reference/fidelity.md. `answer` is JSON from the documents, or empty."""

    name: str
    text: str
    settles: str
    answer: Callable[[Seen], Any]


def answers_of(seen: Seen) -> dict[str, Any]:
    """The answer to each question, by its name; None for one that the documents do not answer."""
    return {each.name: each.answer(seen) or None for each in QUESTIONS}


def answers_page(answers: Mapping[str, Any], where: str) -> str:
    """The answers for people to read, in Markdown."""
    lines = [f"# What {where} answered", ""]
    for each in QUESTIONS:
        found = answers[each.name]
        text = (
            "Not seen."
            if found is None
            else f"```json\n{json.dumps(found, indent=1, ensure_ascii=False)}\n```"
        )
        lines += [f"## {each.text}", "", f"In docs/reference/fidelity.md: {each.settles}", "", text, ""]
    return "\n".join(lines)


def _at(value: Any, *keys: str) -> Any:  # Any: JSON
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _picked(value: Any, *keys: str) -> dict[str, Any]:  # Any: JSON
    return {key: _at(value, key) for key in keys}


def _entries(seen: Seen, name: str, task: str) -> list[Any]:
    """The log entries of one replica, or of the service, in the run of this name."""
    found = seen.get(f"{name}.log") or ()
    return [each for each in found if _at(each, "resource", "labels", "task_name") == task]


def _service_lines(name: str) -> Callable[[Seen], list[Any]]:
    def lines(seen: Seen) -> list[Any]:
        found = _entries(seen, name, "service")
        return [_picked(each, "textPayload", "jsonPayload", "labels", "severity") for each in found]

    return lines


def _jobs(name: str) -> Callable[[Seen], list[Any]]:
    fields = ("name", "displayName", "state", "error", "createTime", "startTime", "endTime", "labels")
    return lambda seen: [_picked(_at(each, "body"), *fields) for each in seen.get(f"{name}.jobs") or ()]


def _programs(name: str, *fields: str) -> Callable[[Seen], list[Any]]:
    """What the program of each replica printed about itself."""

    def printed(seen: Seen) -> list[Any]:
        payloads = [_at(each, "jsonPayload") or {} for each in _entries(seen, name, CHIEF_REPLICA)]
        return [_picked(each, *fields) for each in payloads if "argv" in each]

    return printed


def _own_entries(seen: Seen) -> list[str]:
    return [line for line in _at(seen.get("doctor"), "lines") or () if WRITTEN in line or PASSED in line]


def _refusals(seen: Seen) -> dict[str, Any]:
    found = seen.get("refusals") or {}
    return {
        name: _picked(each, "status", "body") for name, each in found.items() if name != "cancel_of_ended"
    }


def _attributes(seen: Seen) -> dict[str, Any]:
    found = seen.get("messages") or {}
    return {topic: sorted({*messages[0]["attributes"]}) for topic, messages in found.items() if messages}


QUESTIONS: Sequence[Question] = (
    Question(
        "cancelled_lines",
        "What does the service log about a job that is cancelled?",
        "**`Job cancelled.`**",
        _service_lines("cancelled"),
    ),
    Question("cancelled_end", "How does a cancelled job end?", "| states |", _jobs("cancelled")),
    Question(
        "cancel_of_ended",
        "What does the cancellation of an ended job answer?",
        "**Cancelling an ended job**",
        lambda seen: _at(seen.get("refusals"), "cancel_of_ended"),
    ),
    Question(
        "tuning_lines",
        "Which labels have the service's lines about a tuning?",
        "**Log entries** of a trial",
        _service_lines("tuning"),
    ),
    Question(
        "trial_jobs",
        "Is each trial a custom job that can be read?",
        "**Trials** are full custom jobs",
        _jobs("tuning"),
    ),
    Question(
        "parameters",
        "How is a DISCRETE parameter with integral values written?",
        "**Parameters** are appended",
        _programs("tuning", "argv"),
    ),
    Question(
        "environment",
        "What does a replica find in its environment?",
        "| environment |",
        _programs("small", "variables", "CLUSTER_SPEC", "TF_CONFIG"),
    ),
    Question(
        "flex_start_end", "How does a job end that found no capacity?", "| FLEX_START |", _jobs("flex_start")
    ),
    Question(
        "own_entries",
        "Does the sink forward `ml_job` entries that users write?",
        "**Entries of resource `ml_job` that users write**",
        _own_entries,
    ),
    Question("refusals", "What do refusals say?", "| refusals |", _refusals),
    Question(
        "attributes",
        "Which attributes have the messages that become events?",
        "| events come as binary CloudEvents over HTTP |",
        _attributes,
    ),
)
