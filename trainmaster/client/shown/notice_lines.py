"""Words about a notice's deliveries."""

from trainmaster.orchestrator.core.notices.deliveries import Delivery, NoticeDeliveries


def delivery_text(delivery: Delivery) -> str:
    """`delivered`, or the state with the reason and the number of attempts."""
    times = f", after {delivery.attempts} attempts" if delivery.attempts > 1 else ""
    return f"{delivery.state}{f': {delivery.reason}' if delivery.reason else ''}{times}"


def deliveries_text(found: NoticeDeliveries) -> str:
    """`ops delivered; chat retrying: HTTP 500`."""
    return "; ".join(
        f"{name} {delivery_text(delivery)}" for name, delivery in sorted(found.receivers.items())
    )
