"""Values that are documents."""

from typing import Any

from trainmaster.orchestrator.core.documents.codec import encoded


class Encoded:
    """A dataclass whose fields are those of its document; one that is None is left out."""

    @property
    def document(self) -> dict[str, Any]:
        document: Any = encoded(self)
        return dict(document)
