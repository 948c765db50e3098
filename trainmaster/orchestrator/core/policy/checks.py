"""What a policy's schema cannot see: names in `${…}`, networks, URLs, and names that must be under another key."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from trainmaster.orchestrator.core.policy.console import EVERY_TEAM
from trainmaster.orchestrator.core.policy.receivers import MODEL_CHARS, url_problem

_NAME = re.compile(r"\$\{(\w+)\}")


def fill_in(document: object, names: Mapping[str, str]) -> tuple[object, list[Fault]]:
    """The document with what its `${…}` stand for, and a fault for each that stands for nothing; `names` may lack `prefix`."""
    faults, names = list[Fault](), {"prefix": "", **names}

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
    faults = [*_value_faults(filled), *_repeated_names(filled)]
    for path, found, key, known in _references(filled):
        unknown = [name for name in found if name not in known]
        if unknown and not any(is_within(place, f"$.{key}") for place in wrong):
            faults.append(Fault(at=path, problem=f"the policy's {key} lack {listed(unknown)}", among=known))
    others = (fault for fault in faults if not any(is_within(path, fault.path) for path in wrong))
    return sorted([*unfilled, *others])


def _names(document: object, *path: str) -> Sequence[str]:
    """The text at the path, or those of the list there."""
    found = at(document, *path)
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, str)]


def _references(document: object) -> Iterator[tuple[Path, Sequence[str], str, Collection[str]]]:
    """Where the policy names what another of its keys must have, those names, that key, and what it has."""
    rows = list_at(document, "machines")
    machines = {name: mapping_at(row, "accelerators") for row in rows for name in _names(row, "types")}
    known = {
        "regions": _names(document, "regions"),
        "machines": machines,
        "teams": mapping_at(document, "teams"),
    }
    for number, pool in enumerate(list_at(document, "pools")):
        for field, key in (("region", "regions"), ("machine", "machines"), ("teams", "teams")):
            yield ("pools", number, field), _names(pool, field), key, known[key]
        machine, kind = text_at(pool, "machine"), text_at(pool, "accelerator", "type")
        if machine in machines and kind is not None:
            counts = [
                f"{count} {name}" for name in machines[machine] for count in list_at(machines[machine], name)
            ]
            found = f"{at(pool, 'accelerator', 'count')} {kind}"
            yield ("pools", number, "accelerator"), [found], "machines", counts
    for number, receiver in enumerate(list_at(document, "notify")):
        yield ("notify", number, "when", "teams"), _names(receiver, "when", "teams"), "teams", known["teams"]
    for principal in mapping_at(document, "console", "people"):
        path = ("console", "people", principal)
        yield path, _names(document, *path), "teams", [*known["teams"], EVERY_TEAM]
    for number, limit in enumerate(list_at(document, "admission", "limits")):
        if text_at(limit, "per") == "team" and not known["teams"]:
            yield ("admission", "limits", number, "per"), ["one to be limited"], "teams", ()
    yield ("evaluation", "machine"), _names(document, "evaluation", "machine"), "machines", machines


def _repeated_names(document: object) -> Iterator[Fault]:
    teams = mapping_at(document, "teams").items()
    named: tuple[list[tuple[Path, str | None]], ...] = (
        [(("pools", n, "id"), text_at(row, "id")) for n, row in enumerate(list_at(document, "pools"))],
        [(("notify", n, "name"), text_at(row, "name")) for n, row in enumerate(list_at(document, "notify"))],
        [(("teams", name, "requests_topic"), text_at(row, "requests_topic")) for name, row in teams],
    )
    for rows in named:
        for number, (path, name) in enumerate(rows):
            if name is not None and name in [other for _, other in rows[:number]]:
                yield Fault(at=path, problem=f"{name} is there twice", repair="write another one for each")


def _value_faults(document: object) -> Iterator[Fault]:
    """No URL is quoted: it may hold credentials."""
    for number, network in enumerate(list_at(document, "nfs_servers")):
        try:
            ip_network(str(network))
        except ValueError as error:
            yield Fault(
                at=("nfs_servers", number), problem=str(error), allowed="a network such as 10.0.0.0/8"
            )
    for number, receiver in enumerate(list_at(document, "notify")):
        for kind, field in (("webhook", "url"), ("github", "api")):
            url, path = text_at(receiver, kind, field), ("notify", number, kind, field)
            problem, _, repair = ((url_problem(url) if url else None) or "").partition(": ")
            if problem:
                yield Fault(at=path, problem=problem, repair=repair, is_secret=True)
        for place, pattern in enumerate(list_at(receiver, "when", "models")):
            if not set(str(pattern)) <= MODEL_CHARS:
                problem, of_model = f"no model's name matches {pattern!r}", ("when", "models", place)
                allowed = "lower-case letters, digits, '_', '-' and '*'"
                yield Fault(at=("notify", number, *of_model), problem=problem, allowed=allowed)
