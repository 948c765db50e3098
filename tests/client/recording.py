"""A service that records the requests that arrive in the inbox, as the functions do."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from google.api_core.exceptions import NotFound

from tests.client.served import Served
from trainmaster.client.clients import Clients

REQUEST = "requests/request.yaml"


def status(served: Served, generation: int, name: str = REQUEST, **changes: Any) -> None:
    document = {"schema": "drop_status.v1", "generation": generation, "state": "submitted", "run_id": "run"}
    served.write("ledger", f"status/{name}.json", document | changes)


@contextmanager
def service(
    served: Served, read: list[bytes], name: str = REQUEST, **changes: Any
) -> Iterator[None]:  # Any: of a JSON document
    """Records each generation of the request of this name that it finds, and keeps its content in `read`.

    `changes` are made in the status that it writes.
    """
    ended = threading.Event()

    def record() -> None:
        seen = 0
        with Clients(served.clients.context) as clients:
            bucket = clients.storage.bucket(clients.context.inbox_bucket)
            while not ended.wait(0.02):
                live = bucket.get_blob(name)
                if live is None or live.generation == seen:
                    continue
                with suppress(NotFound):  # replaced meanwhile: the next look finds its successor
                    read.append(live.download_as_bytes())
                    seen = live.generation
                    status(served, int(seen), name, **changes)

    thread = threading.Thread(target=record)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
