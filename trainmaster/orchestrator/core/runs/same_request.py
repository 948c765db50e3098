"""Whether what came in asks for the same as something before it.

A message with an idempotency key is the same request as an earlier one if its document is the same, however it is
formatted; with another document, it is refused. A file is the same request as the one that its name held a moment
before if it has the same bytes, as editors and tools that synchronize save a file several times; or as the one of
which its place or its name says that it was put away after its run.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.documents.document import is_json, parse_document
from trainmaster.orchestrator.core.documents.faults import plain
from trainmaster.orchestrator.core.names import PUT_AWAY, UPLOAD_ID
from trainmaster.orchestrator.core.runs.drop_status import run_shown, shown_generation
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

SAVED_AGAIN_WITHIN = timedelta(seconds=60)
_TRIED_AGAIN = (RunState.FAILED, RunState.CANCELLED, RunState.EXPIRED)
"""States of a run after which an upload of the same bytes means another try."""
_UPLOAD = "upload:"
_STEM = re.compile(
    rf"(copy of )?(?P<stem>.+?)([ ._-]+({PUT_AWAY.pattern}|copy)( \(?\d+\)?)?| \(\d+\))*", re.IGNORECASE
)
"""`a.done`, `a_old`, `a (1)`, `a copy 2`, `a - Copy (2)` and `Copy of a` are all made from `a`."""


def file_id(size_bytes: int, crc32c: str, metadata: Mapping[str, Any]) -> str | None:
    """The same for copies of a file; two calls of `trainmaster submit` upload two files. None without a checksum."""
    upload_id = str(metadata.get(UPLOAD_ID) or "")[:64]
    return f"{_UPLOAD if upload_id else ''}{upload_id}crc32c:{crc32c}:{size_bytes}" if crc32c else None


def is_saved_again(present: Mapping[str, Any], source: Source) -> bool:
    """Whether this generation of a file asks for the same as the older one that the status of its name shows.

    A file that `trainmaster submit` uploaded does so whenever it is rewritten: the next call uploads another one.
    """
    generation, shown = source.generation or 0, shown_generation(present)
    if present.get("repeated_by") == generation:
        return True
    is_same = run_shown(present, shown) is not None and present.get("content_id") == source.content_id
    if shown >= generation or not is_same or source.content_id is None:
        return False
    earlier = time_or(present.get("created_at"), source.event_time)
    is_of_moment = timedelta() <= source.event_time - earlier <= SAVED_AGAIN_WITHIN
    return source.content_id.startswith(_UPLOAD) or (
        is_of_moment and present.get("state") not in _TRIED_AGAIN
    )


def is_put_away(before: Mapping[str, Any], source: Source) -> bool:
    """Whether the file is the one that the status `before` shows, of one of its `names_before`."""
    is_same = source.content_id is not None and before.get("content_id") == source.content_id
    return is_same and run_shown(before, shown_generation(before)) is not None


def put_away_reason(name: str, before: Mapping[str, Any]) -> str:
    """Why the file is ignored, which had this name before, and what to do to run it again."""
    what = f"this file is ignored: it is a copy of {plain(name)}, which started {before['run_id']}, and is put away"
    return f"{what}; to run it again, upload {plain(name)} again, or this file under another name"


def names_before(object_name: str) -> Sequence[str]:
    """The names that a file may have had before it was put away under this one; none for most names.

    `requests/old/a.done.yaml` may have been `requests/a.yaml` or `requests/a.done.yaml`.
    """
    *folders, file_name = object_name.split("/")
    stem, dot, suffix = file_name.rpartition(".")
    made_from = _STEM.fullmatch(stem)
    files = dict.fromkeys((f"{made_from['stem'] if made_from else stem}{dot}{suffix}", file_name))
    away = next((place for place, name in enumerate(folders) if place and PUT_AWAY.fullmatch(name)), None)
    places = [folders] if away is None else [folders[:away], [*folders[:away], *folders[away + 1 :]]]
    names = dict.fromkeys("/".join((*place, file)) for place in places for file in files)
    return [name for name in names if name != object_name]


def document_id(content: bytes) -> str:
    """The same for every text of the same document; of a text that cannot be read, for the same bytes."""
    if len(content) <= MAX_REQUEST_BYTES:
        read = parse_document(content, as_json=is_json(content))
        content = content if read.faults else json.dumps(read.value, sort_keys=True).encode()
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def is_key_reused(recorded_id: str | None, source: Source) -> bool:
    """Whether the key of the message named another document before; `recorded_id` is that document's."""
    return source.idempotency_key is not None and recorded_id not in (None, source.content_id)
