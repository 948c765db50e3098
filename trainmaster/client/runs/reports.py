"""Reads the faults of a report back, to show each with its line."""

from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.places import Place

_TEXTS = ("path", "problem", "found", "allowed", "repair")


def reported_fault(document: Mapping[str, Any]) -> Fault:
    """The fault in an entry of schemas/rejection_report.v1.schema.json; what it lacks is empty.

    Raises:
        TypeError, ValueError: a field has another type.
    """
    path, problem, found, allowed, repair = (str(document.get(name, "")) for name in _TEXTS)
    place = decoded(Place, document) if "line" in document else None
    return Fault(path=path, problem=problem, found=found, allowed=allowed, repair=repair, place=place)
