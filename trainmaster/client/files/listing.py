"""The objects that a run left behind, with sizes, generations and checksums."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, Damaged, NotFound
from trainmaster.client.find import Run
from trainmaster.client.records import read_bytes
from trainmaster.orchestrator.core.champions.champion import Reign
from trainmaster.orchestrator.core.documents.codec import parse_json
from trainmaster.orchestrator.core.names import object_uri, split_object_uri
from trainmaster.orchestrator.core.runs.end import Model, ModelFiles

LISTING_MAX_BYTES = 64 * 1024 * 1024
FILES_MAX = 100_000


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One object, by what must be found when it is downloaded."""

    uri: str
    path: str
    """Where it belongs, relative to the folder of the download, with slashes."""
    size_bytes: int
    generation: int | None = None
    crc32c: str | None = None
    """Base64 of the four bytes, big-endian, as Cloud Storage writes it."""
    sha256: str | None = None
    is_beside_model: bool = False
    """A document that describes the model, for example its metrics.json, and does not count as one of its files."""


def model_files(clients: Clients, run: Run) -> list[RemoteFile]:
    """The files of the run's model, and the documents that counted, as the record lists them.

    Raises:
        NotFound: the run has no model, or the ledger no longer has the list of its files.
        Damaged: the list is not the one that the run recorded.
        ClientRefused: the run recorded only the first files of its model.
    """
    model, listed = listed_model(run)
    document = model_listing(clients, run)
    if len(document["files"]) < listed.count:
        run_id = run.record.run_id
        raise ClientRefused(
            f"The record of {run_id} lists {len(document['files'])} of the model's {listed.count} files. "
            f"Download everything: trainmaster download --all {run_id}"
        )
    return _listed_files(document, model.uri)


def model_listing(clients: Clients, run: Run) -> dict[str, Any]:
    """The list of the model's files that the run recorded: schemas/model_files.v1.schema.json.

    Raises:
        NotFound: the run has no model, or the ledger no longer has the list.
        Damaged: the list is not the one that the run recorded.
    """
    _, listed = listed_model(run)
    return _listing(clients, str(listed.listing_uri), listed.listing_sha256)


def listed_model(run: Run) -> tuple[Model, ModelFiles]:
    """The run's model and its files.

    Raises:
        NotFound: it has none, or no list of them.
    """
    model, run_id = run.record.model, run.record.run_id
    if "models" in (run.record.cleaned or {}):
        raise NotFound(f"The policy's retention has removed what {run_id} wrote, its model too.")
    if model is None or model.files is None or model.files.listing_uri is None:
        why = "; ".join(run.record.problems) or f"its state: {run.record.state}"
        raise NotFound(
            f"{run_id} has no model ({why}). For what it wrote, if anything: trainmaster download --all {run_id}"
        )
    return model, model.files


def champion_files(clients: Clients, reign: Reign) -> list[RemoteFile]:
    """The files of the champion's copy, with the sizes and checksums that its run recorded.

    Raises:
        ClientRefused: its lineage names no list of the files.
        NotFound: the ledger no longer has the list of the files.
        Damaged: the list is not the one that the run recorded.
    """
    lineage = reign.lineage
    if lineage.files_uri is None:
        raise ClientRefused(
            f"No list of the files of {reign.run_id} is on record. "
            f"Download what the run itself saved: trainmaster download {reign.run_id}"
        )
    document = _listing(clients, lineage.files_uri, lineage.files_sha256)
    # A copy has its own generation, and no account may replace it.
    return [replace(file, generation=None) for file in _listed_files(document, reign.model_uri)]


def _listed_files(document: Mapping[str, Any], model_uri: str) -> list[RemoteFile]:
    """The files and documents that the list names, in this directory, or beside this file."""
    directory = model_uri.rpartition("/")[0]
    return [
        RemoteFile(
            uri=f"{directory}/{each['path']}",
            path=each["path"],
            size_bytes=each["size_bytes"],
            generation=each["generation"],
            crc32c=each.get("crc32c"),
            is_beside_model=is_beside_model,
        )
        for is_beside_model, listed in ((False, document["files"]), (True, document.get("documents", ())))
        for each in listed
    ]


def _listing(clients: Clients, uri: str, sha256: str | None) -> dict[str, Any]:
    content = read_bytes(clients.storage, *split_object_uri(uri), LISTING_MAX_BYTES)
    if content is None:
        raise NotFound(f"{uri} does not exist any more.")
    if len(content) > LISTING_MAX_BYTES:
        raise Damaged(f"{uri} has more than {LISTING_MAX_BYTES} bytes.")
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise Damaged(f"{uri} is not the list that the run recorded: its SHA-256 differs.")
    try:
        document = parse_json(content)
    except ValueError as error:
        raise Damaged(f"{uri} is not a JSON document: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("files"), list):
        raise Damaged(f"{uri} is not a list of a model's files.")
    return document


def objects_below(clients: Clients, directory_uri: str) -> list[RemoteFile]:
    """Every object below the directory as its bucket lists it now, folder markers excepted.

    Raises:
        ClientRefused: there are more than FILES_MAX.
    """
    bucket, prefix = split_object_uri(directory_uri.rstrip("/") + "/")
    listed = clients.storage.list_blobs(
        bucket, prefix=prefix, fields="items(name,size,generation,crc32c),nextPageToken"
    )
    found = [
        RemoteFile(
            uri=object_uri(bucket, blob.name),
            path=blob.name.removeprefix(prefix),
            size_bytes=blob.size,
            generation=blob.generation,
            crc32c=blob.crc32c,
        )
        for blob in islice(listed, FILES_MAX + 1)
    ]
    if len(found) > FILES_MAX:
        raise ClientRefused(
            f"There are more than {FILES_MAX} objects below {directory_uri}. "
            f"Copy them with: gcloud storage cp --recursive {directory_uri} ."
        )
    return [each for each in found if not each.path.endswith("/")]
