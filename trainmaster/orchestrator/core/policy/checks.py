"""What a policy's schema cannot see: names in `${…}`, networks, and fields that must agree with each other."""

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_network

from trainmaster.orchestrator.core.documents.faults import Fault, is_within
from trainmaster.orchestrator.core.documents.values import (
    list_at,
    mapping_at,
    text_at,
    texts_at,
    with_strings,
)
from trainmaster.orchestrator.core.policy.pools import pool_faults
from trainmaster.orchestrator.core.policy.receivers import receiver_faults

_NAME = re.compile(r"\$\{(\w+)\}")


def fill_in(document: object, names: Mapping[str, str]) -> tuple[object, list[Fault]]:
    """The document with what its `${…}` stand for, and a fault for each that stands for nothing."""
    faults = list[Fault]()

    def with_names(text: str, path: tuple[str | int, ...]) -> str:
        if unknown := [name for name in _NAME.findall(text) if name not in names]:
            problem = f"{text!r} names ${{{unknown[0]}}}"
            faults.append(Fault(at=path, problem=problem, among=sorted(names)))
        return _NAME.sub(lambda match: names.get(match[1], match[0]), text)

    return with_strings(document, with_names), faults


def policy_faults(document: object, names: Mapping[str, str], refused: Iterable[Fault] = ()) -> list[Fault]:
    """Everything that is wrong with the policy beside what its schema has `refused`, sorted by path.

    Nothing is compared with a key in which the schema refuses something: that may be the cause.
    """
    filled, unfilled = fill_in(document, names)
    wrong = {path for fault in (*refused, *unfilled) for path in (fault.path, fault.meant)}

    def is_sound(key: str) -> bool:
        return not any(is_within(path, f"$.{key}") for path in wrong)

    teams = mapping_at(filled, "teams") if is_sound("teams") else None
    regions = texts_at(filled, "regions") if is_sound("regions") else None
    counts = _accelerator_counts(filled) if is_sound("machines") else None
    faults = list(_network_faults(filled))
    faults += pool_faults(list_at(filled, "pools"), regions=regions, counts=counts, teams=teams)
    faults += receiver_faults(list_at(filled, "notify"), teams)
    faults += [] if teams is None else _team_faults(filled, teams, project=names.get("project", ""))
    machine = text_at(filled, "evaluation", "machine")
    if counts is not None and machine is not None and machine not in counts:
        problem = f"{machine} is not one of the machines"
        faults.append(Fault(path="$.evaluation.machine", problem=problem, repair="name one of machines"))
    others = (fault for fault in faults if not any(is_within(path, fault.path) for path in wrong))
    return sorted([*unfilled, *others])


def _accelerator_counts(document: object) -> dict[str, Mapping[str, object]]:
    """The counts of each accelerator, by machine type."""
    rows = list_at(document, "machines")
    return {name: mapping_at(row, "accelerators") for row in rows for name in texts_at(row, "types")}


def _network_faults(document: object) -> Iterator[Fault]:
    for number, network in enumerate(texts_at(document, "nfs_servers")):
        try:
            ip_network(network)
        except ValueError as error:
            yield Fault(
                at=("nfs_servers", number), problem=str(error), allowed="a network such as 10.0.0.0/8"
            )


def _team_faults(document: object, teams: Mapping[str, object], *, project: str) -> Iterator[Fault]:
    """Why the teams are ambiguous or cannot be used; `project` is the deployment's, empty if it is not known."""
    topics = dict[str, str]()
    for name, team in teams.items():
        topic = text_at(team, "requests_topic")
        if topic is not None and topics.setdefault(topic, name) != name:
            problem = f"{topic} is the requests_topic of more than one team"
            yield Fault(at=("teams", name, "requests_topic"), problem=problem)
    for number, limit in enumerate(list_at(document, "admission", "limits")):
        if not teams and text_at(limit, "per") == "team":
            at = ("admission", "limits", number, "per")
            yield Fault(at=at, problem="`per: team` needs `teams`", repair="name the teams, or leave it out")
    if teams and not project:
        problem = "the accounts of their jobs are in the deployment's project, which is not known here"
        yield Fault(path="$.teams", problem=problem)
