"""Places in the queue as objects of the ledger: empty, their names and metadata hold everything."""

from collections.abc import Mapping

from trainmaster.orchestrator.core.admission.queue import Place
from trainmaster.orchestrator.core.documents.codec import decoded_time, encoded_time
from trainmaster.orchestrator.core.names import waiting_object, waiting_parts


def place_object(place: Place) -> str:
    return waiting_object(place.priority, place.arrived_at, place.run_id)


def place_metadata(place: Place) -> dict[str, str]:
    """The metadata that `parse_place` reads."""
    return {
        "region": place.region,
        "classes": ",".join(place.classes),
        "not_before": encoded_time(place.not_before),
        "limits": ",".join(place.limits),
        "rate_limited": str(place.rate_limited).lower(),
        "blocked_on_limit": place.blocked_on_limit or "",
    }


def parse_place(object_name: str, metadata: Mapping[str, str]) -> Place | None:
    """The place; None for any other object, which must not stop the queue."""
    try:
        priority, arrived_at, run_id = waiting_parts(object_name)
        return Place(
            run_id=run_id,
            region=metadata["region"],
            priority=priority,
            arrived_at=arrived_at,
            classes=tuple(metadata["classes"].split(",")),
            not_before=decoded_time(metadata["not_before"]),
            limits=tuple(filter(None, metadata.get("limits", "").split(","))),
            rate_limited=metadata.get("rate_limited") == "true",
            blocked_on_limit=metadata.get("blocked_on_limit") or None,
        )
    except (ValueError, KeyError):
        return None
