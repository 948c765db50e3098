"""The news that `up` prints while the stack runs: one line per notice that the functions publish."""

import base64
import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from trainmaster.client.terminal import one_line

REMEMBERED = 1000
"""Ids of notices that are not printed again; a notice may be published and delivered more than once."""
MAX_BYTES = 1024 * 1024


class News:
    """Prints each notice once. Safe in several threads."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._seen: deque[str] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def show(self, body: bytes) -> None:
        """Print the line of a notice, of which `body` is the event as a function gets it; anything else is ignored."""
        notice = _read_notice(body)
        if notice is None:
            return
        with self._lock:
            if notice["id"] in self._seen:
                return
            self._seen.append(notice["id"])
            with contextlib.suppress(
                OSError, ValueError
            ):  # the reader of a pipe may be gone; the stack is not
                self._write(line_of(notice))


def line_of(notice: Mapping[str, Any]) -> str:
    """The time here, the run or other subject, its change, and the model's URI or the reason."""
    at = datetime.fromisoformat(notice["time"]).astimezone()
    data = notice["data"]
    change = str(data.get("state") or notice["type"].removeprefix("trainmaster.").rpartition(".")[0])
    error = data.get("error")
    reason = error.get("message") if isinstance(error, dict) else data.get("reason")
    detail = data.get("model_uri") or reason or data.get("report_uri") or ""
    words = [f"{at:%H:%M:%S}", notice["subject"], change.replace(".", " ").replace("_", " "), detail]
    return one_line("  ".join(str(word) for word in words if word))


def _read_notice(body: bytes) -> dict[str, Any] | None:  # Any: JSON, of which the fields used are checked
    if len(body) > MAX_BYTES:
        return None
    try:
        notice = json.loads(base64.b64decode(json.loads(body)["message"]["data"]))
        datetime.fromisoformat(notice["time"])
        texts = all(isinstance(notice[name], str) for name in ("id", "type", "subject"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return notice if texts and isinstance(notice.get("data"), dict) else None
