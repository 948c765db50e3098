"""Functions that show what the platform does to them."""

import json
import os
import sys
import time

import functions_framework
from cloudevents.http import CloudEvent


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def tell(event: CloudEvent) -> None:
    """Prints its environment and the event, one structured line; and one plain line to each stream."""
    line = {
        "severity": "NOTICE",
        "message": "told",
        "environment": dict(os.environ),
        "id": event["id"],
        "data": event.data,
    }
    sys.stdout.write(f"{json.dumps(line)}\nplain out\n")
    sys.stdout.flush()
    sys.stderr.write("plain err\n")


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def fail(event: CloudEvent) -> None:
    """Raises."""
    raise RuntimeError(f"no luck with {event['id']}")


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def linger(event: CloudEvent) -> None:
    """Takes longer than its timeout."""
    time.sleep(float(event.data["sleep_s"]))


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def end(_event: CloudEvent) -> None:
    """Ends its whole process group, as an out-of-memory kill of the instance does."""
    os.killpg(os.getpgid(0), 9)


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def show_settings(_event: CloudEvent) -> None:
    """Prints what the orchestrator's settings say; another trainmaster has no WORD."""
    from trainmaster.orchestrator.settings import WORD  # type: ignore[attr-defined]  # the test writes it

    sys.stdout.write(f"{WORD}\n")
    sys.stdout.flush()
