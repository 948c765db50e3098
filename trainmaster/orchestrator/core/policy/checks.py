"""What a policy's schema cannot see: names in `${…}`, networks, URLs, and names that must be under another key."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_network

from trainmaster.orchestrator.core.documents.faults import Fault, is_within, listed
from trainmaster.orchestrator.core.documents.values import (
    Path,
    at,
    list_at,
    mapping_at,
    text_at,
    with_strings,
)
from trainmaster.orchestrator.core.policy.receivers import MODEL_CHARS, url_problem

_NAME = re.compile(r"\$\{(\w+)\}")


def fill_in(document: object, names: Mapping[str, str]) -> tuple[object, list[Fault]]:
    """The document with what its `${…}` stand for, and a fault for each that stands for nothing."""
    faults = list[Fault]()

    def with_names(text: str, path: Path) -> str:
        if unknown := [name for name in _NAME.findall(text) if name not in names]:
            faults.append(Fault(at=path, problem=f"{text!r} names ${{{unknown[0]}}}", among=sorted(names)))
        return _NAME.sub(lambda match: names.get(match[1], match[0]), text)

    return with_strings(document, with_names), faults


def policy_faults(document: object, names: Mapping[str, str], refused: Iterable[Fault] = ()) -> list[Fault]:
    """Everything that is wrong with the policy beside what its schema has `refused`, sorted by path.

    Nothing is compared with a key in which the schema refuses something: that may be the cause.
    """
    filled, unfilled = fill_in(document, names)
    wrong = {path for fault in (*refused, *unfilled) for path in (fault.path, fault.meant)}
    teams = mapping_at(filled, "teams")
    counts = {
        name: at(row, "accelerators") for row in list_at(filled, "machines") for name in _names(row, "types")
    }
    known = {"teams": teams, "regions": _names(filled, "regions"), "machines": counts}
    sound = {key for key in known if not any(is_within(path, f"$.{key}") for path in wrong)}
    faults = [*_value_faults(filled), *_receiver_faults(filled)]
    for path, found, key in _references(filled):
        if key in sound and (unknown := [name for name in found if name not in known[key]]):
            faults.append(Fault(at=path, problem=f"{listed(unknown)} is none of {key}", among=known[key]))
    faults += _accelerator_faults(filled, counts) if "machines" in sound else ()
    faults += _team_faults(filled, teams, names.get("project", "")) if "teams" in sound else ()
    others = (fault for fault in faults if not any(is_within(path, fault.path) for path in wrong))
    return sorted([*unfilled, *others])


def _names(document: object, *path: str) -> Sequence[str]:
    """The text at the path, or those of the list there."""
    found = at(document, *path)
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, str)]


def _references(document: object) -> Iterator[tuple[Path, Sequence[str], str]]:
    """Where the policy names what another of its keys must have, those names, and that key."""
    for number, pool in enumerate(list_at(document, "pools")):
        for field, key in (("region", "regions"), ("machine", "machines"), ("teams", "teams")):
            yield ("pools", number, field), _names(pool, field), key
    for number, receiver in enumerate(list_at(document, "notify")):
        yield ("notify", number, "when", "teams"), _names(receiver, "when", "teams"), "teams"
    yield ("evaluation", "machine"), _names(document, "evaluation", "machine"), "machines"


def _value_faults(document: object) -> Iterator[Fault]:
    for number, network in enumerate(list_at(document, "nfs_servers")):
        try:
            ip_network(str(network))
        except ValueError as error:
            yield Fault(
                at=("nfs_servers", number), problem=str(error), allowed="a network such as 10.0.0.0/8"
            )
    for key, field in (("pools", "id"), ("notify", "name")):
        names = [text_at(row, field) for row in list_at(document, key)]
        for number, name in enumerate(names):
            if name is not None and name in names[:number]:
                repair = f"give each entry another {field}"
                yield Fault(at=(key, number, field), problem=f"{name} is there twice", repair=repair)


def _accelerator_faults(document: object, counts: Mapping[str, object]) -> Iterator[Fault]:
    for number, pool in enumerate(list_at(document, "pools")):
        machine, kind = text_at(pool, "machine"), text_at(pool, "accelerator", "type")
        count = at(pool, "accelerator", "count")
        if machine in counts and kind is not None and count not in list_at(counts[machine], kind):
            problem = f"{machine} does not support {count} of {kind}"
            yield Fault(at=("pools", number, "accelerator"), problem=problem)


def _receiver_faults(document: object) -> Iterator[Fault]:
    """No URL is quoted: it may hold credentials."""
    for number, receiver in enumerate(list_at(document, "notify")):
        for kind, field in (("webhook", "url"), ("github", "api")):
            url = text_at(receiver, kind, field)
            problem, _, repair = ((url_problem(url) if url else None) or "").partition(": ")
            if problem:
                path = ("notify", number, kind, field)
                yield Fault(at=path, problem=problem, repair=repair, is_secret=True)
        for place, pattern in enumerate(list_at(receiver, "when", "models")):
            if isinstance(pattern, str) and not set(pattern) <= MODEL_CHARS:
                path, problem = (
                    ("notify", number, "when", "models", place),
                    f"no model's name matches {pattern!r}",
                )
                yield Fault(at=path, problem=problem, allowed="lower-case letters, digits, '_', '-' and '*'")


def _team_faults(document: object, teams: Mapping[str, object], project: str) -> Iterator[Fault]:
    """Why the teams are ambiguous or cannot be used; `project` is the deployment's, empty if it is not known."""
    topics = dict[str, str]()
    for name, team in teams.items():
        topic = text_at(team, "requests_topic")
        if topic is not None and topics.setdefault(topic, name) != name:
            problem = f"{topic} is the requests_topic of more than one team"
            yield Fault(at=("teams", name, "requests_topic"), problem=problem)
    limits = [] if teams else list_at(document, "admission", "limits")
    for number, limit in enumerate(limits):
        if text_at(limit, "per") == "team":
            path = ("admission", "limits", number, "per")
            yield Fault(
                at=path, problem="`per: team` needs `teams`", repair="name the teams, or leave it out"
            )
    if teams and not project:
        problem = "the accounts of their jobs are in the deployment's project, which is not known here"
        yield Fault(path="$.teams", problem=problem)
