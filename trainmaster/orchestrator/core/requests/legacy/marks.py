"""How a job of AI Platform Training is known."""

from collections.abc import Mapping

_MARKS = frozenset({"trainingInput", "training_input", "jobId", "job_id"})


def is_legacy(document: Mapping[str, object]) -> bool:
    """Whether the document is a job of AI Platform Training."""
    return bool(_MARKS & set(document))
