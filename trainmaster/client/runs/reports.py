"""Reads the faults of a report back, to show each with its line."""

from collections.abc import Iterable, Mapping

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.places import TextPlace
from trainmaster.orchestrator.core.documents.placing import position

_TEXTS = ("path", "problem", "found", "allowed", "repair")


def reported_faults(documents: Iterable[object]) -> list[Fault]:
    """The faults in entries of schemas/rejection_report.v1.schema.json, in the order of the file that they are in.

    What an entry lacks is empty; of one that cannot be read the problem is left.
    """
    return sorted(map(_reported_fault, documents), key=position)


def _reported_fault(document: object) -> Fault:
    if not isinstance(document, Mapping):
        return Fault(path="$", problem=str(document))
    path, problem, found, allowed, repair = (str(document.get(name, "")) for name in _TEXTS)
    try:
        place = decoded(TextPlace, document) if "line" in document else None
    except (TypeError, ValueError):
        place = None
    return Fault(path=path or "$", problem=problem, found=found, allowed=allowed, repair=repair, place=place)
