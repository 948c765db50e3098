"""The origin of a run: it was started from the content of a file on this machine, or only from a file of its name.

A request in YAML that options changed begins with a comment that has the file's SHA-256. It is part of the request's
text, which the ledger keeps, so it outlives the object in the inbox.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trainmaster.client.clients import Clients
from trainmaster.client.records import read_bytes, read_json
from trainmaster.orchestrator.core.names import model_name_from, split_object_uri
from trainmaster.orchestrator.core.runs.record import RunRecord, Source
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

GENERAL_NAMES = ("request", "job", "run", "config")
"""Names of files that do not say what is trained."""
_HEADER = "# trainmaster submit changed this request, for example by an option. SHA-256 of the file: "


def inbox_name(file_name: str, model_name: str | None) -> str:
    """The name that `submit` gives a file in the inbox, after which runs are called: of `request.yaml`, its model's."""
    stem, dot, suffix = file_name.rpartition(".")
    is_general = stem.lower() in GENERAL_NAMES and model_name is not None
    return f"{model_name_from(model_name)}{dot}{suffix}" if is_general and model_name else file_name


def header_of(content: bytes) -> str:
    """The first line of a YAML request that `submit` changed: it says from which content of a file.

    The ledger keeps it with the request's text, so that the file still names its run.
    """
    return f"{_HEADER}{hashlib.sha256(content).hexdigest()}\n"


@dataclass(frozen=True, kw_only=True)
class LocalFile:
    """A file on this machine that may have been submitted, and its content, which may be cut."""

    path: str
    content: bytes

    @cached_property
    def model_name(self) -> str | None:
        """The model of the request in the file; None where it has none, and in Google's dialects."""
        value = _document(self.content)
        found = value.get("model_name") if isinstance(value, Mapping) else None
        return found if isinstance(found, str) else None

    def may_be_of_model(self, model_name: str | None) -> bool:
        """Whether a request of this model may have been in the file; None for an unknown one."""
        return self.model_name is None or model_name in (self.model_name, None)

    def is_source_of(self, text: str) -> bool:
        """Whether this text was sent for the content: unchanged, changed by `submit`, or with the same values."""
        return (
            text.encode() == self.content
            or text.startswith(header_of(self.content))
            or _without_archive(_document(text.encode())) == _without_archive(_document(self.content))
        )


def read_local_file(path: str) -> LocalFile | None:
    """The file with this path; None if there is none, or it cannot be read."""
    try:
        if not Path(path).is_file():
            return None
        with Path(path).open("rb") as file:
            return LocalFile(path=path, content=file.read(MAX_REQUEST_BYTES + 1))
    except (OSError, ValueError):  # for example: the name is too long, or has a NUL
        return None


def submitted_text(clients: Clients, record: RunRecord) -> str | None:
    """The request as it was sent: from the ledger, of a rejected run from the inbox; None where it is not kept.

    Raises:
        NotFound: the ledger's document is damaged.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    if record.request is None:
        return uploaded_text(clients, record.source)
    document = read_json(clients.storage, *split_object_uri(record.request.original.uri)) or {}
    text = document.get("text")
    return text if isinstance(text, str) else None


def uploaded_text(clients: Clients, source: Source) -> str | None:
    """The text of the uploaded object, if that generation still exists and is a text."""
    if source.uri is None or source.generation is None or source.rule_id is not None:
        return None
    bucket, name = split_object_uri(source.uri)
    content = read_bytes(clients.storage, bucket, name, MAX_REQUEST_BYTES, generation=source.generation)
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _document(content: bytes) -> object:
    """The document's value; the content itself where it has a fault, which equals no other."""
    from trainmaster.orchestrator.core.documents.document import is_json, parse_document

    read = parse_document(content, as_json=is_json(content))
    return content if read.faults else read.value


def _without_archive(value: object) -> object:
    """The request without the place of its packed script, which `submit` adds."""
    script = value.get("script") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(script, Mapping) or "file" not in script:
        return value
    return {**value, "script": {key: each for key, each in script.items() if key != "archive"}}
