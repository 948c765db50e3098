"""The ladder of a request: the ways to run it, tried in order, the request as it is written first."""

from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.admission.rung import Rung, rungs_of
from trainmaster.orchestrator.core.requests.dialects import dialect_of

__all__ = ["Rung", "ladder_of"]


def ladder_of(document: Mapping[str, Any], *, model_name: str | None, region: str) -> tuple[Rung, ...]:
    """The rungs of a document on record, which was found sound under this name; rung 0 first, never empty.

    `region` is the deployment's own, where rungs that name none run. Rung 0 of a document without fallbacks
    is the job that the document always was.
    """
    meant = dialect_of(document).in_own(document, model_name)
    return rungs_of(meant.document, meant.region or region)
