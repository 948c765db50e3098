"""One cold start: a fresh process, one event, and what it took. Started by bench/cold_start.py."""

import json
import resource
import sys
import time

import functions_framework


def main() -> None:
    """Deliver the event to the entry point, and print when it was answered and the peak memory."""
    source, event = sys.argv[1], json.loads(sys.argv[2])
    application = functions_framework.create_app("on_request_uploaded", source, "cloudevent")
    answer = application.test_client().post(
        "/",
        json=event,
        headers={
            "ce-id": "1",
            "ce-source": "//storage.googleapis.com/projects/_/buckets/inbox",
            "ce-specversion": "1.0",
            "ce-type": "google.cloud.storage.object.v1.finalized",
            "ce-time": "2026-01-01T00:00:00Z",
        },
    )
    answered_at = time.time()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert answer.status_code == 200, answer.text
    print(json.dumps({"answered_at": answered_at, "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
