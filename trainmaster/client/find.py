"""Finds a run by its id, by the file that started it, or by its message."""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.nearest import nearest_names, nearest_of
from trainmaster.client.records import read_json
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.client.runs.origin import (
    GENERAL_NAMES,
    LocalFile,
    inbox_name,
    read_local_file,
    submitted_text,
)
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.values import list_at
from trainmaster.orchestrator.core.names import (
    REQUESTS_PREFIX,
    RULES_PREFIX,
    has_form_of_run_id,
    in_team,
    is_run_id,
    message_status_object,
    object_uri,
    record_object,
    run_id_in_group,
    status_object,
)
from trainmaster.orchestrator.core.retraining.book import BOOK_OBJECT
from trainmaster.orchestrator.core.runs.drop_status import IGNORED
from trainmaster.orchestrator.core.runs.record import RECORD_SCHEMA, RunRecord

AGAIN_FOLDER = "again"
"""Where `trainmaster again` uploads a request, below requests/ and the team's folder. So a file keeps its name, after
which a model may be called, and the upload replaces no file of a user."""
NEAR_MAX = 200
"""The newest runs, whose ids are compared with one that is unknown."""
LATEST = "latest"
"""Names the newest run, where no file has this name."""
_SHORT_ID = re.compile(r"[0-9a-f]{4,20}")
OF_NAME_MAX = 10
"""The newest runs of files with one name, whose requests are compared with a file on this machine."""
OF_NAME_SCANNED_MAX = 5000
"""Rows of the index that are searched for them."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as its record says: the document for programs, and the same for this code."""

    document: dict[str, Any]
    """schemas/run_record.v2.schema.json."""
    record: RunRecord
    status: dict[str, Any] | None = None
    """The status of the file or message by which the run was found: schemas/drop_status.v1.schema.json."""


@dataclass(frozen=True, kw_only=True)
class Drop:
    """A file or message without a run: its event is retried or given up, or it was ignored, an order or a rule."""

    status: dict[str, Any]
    """schemas/drop_status.v1.schema.json, or of a rule's file schemas/rule_status.v1.schema.json."""


def find_run(clients: Clients, text: str, *, retry_s: float | None = None, is_to_change: bool = False) -> Run:
    """The run that `text` means: a run's id, a request's file or object, or the id or key of a message.

    `retry_s` is as in `read_document`. A file or message means the latest run that it started. The name of a
    file also means the runs that `trainmaster again` started from it, the full name of an object does not. A
    file on this machine means the object in the inbox that has its name; a path to no file means nothing.

    Files of one name in several folders share that object. So if `clients.note` is given, a file on this machine means
    the latest run of its content; else, with a note, the latest of its model, for example because it was edited since.

    Args:
        clients: of the context that has the run.
        text: what names it.
        retry_s: as above.
        is_to_change: the run will be cancelled or repeated: a file then means a run of its content or none.

    Raises:
        NotFound: no run was started by anything of that name, or only runs of other models.
        ClientRefused: `is_to_change`, and no known run was started from the file's content.
    """
    found = find_run_or_drop(clients, text, retry_s=retry_s, is_to_change=is_to_change)
    if isinstance(found, Run):
        return found
    raise NotFound(
        f"{text!r} has started no run; its status is {found.status.get('state')}: {found.status.get('reason')}. "
        f"All of it: trainmaster status {shlex.quote(text)}"
    )


def find_run_or_drop(
    clients: Clients, text: str, *, retry_s: float | None = None, is_to_change: bool = False
) -> Run | Drop:
    """The same, and files and messages without a run.

    Costs one read for a run, two for a message, three to six for a file, at most twelve operations; for a file on this
    machine whose latest run has another request, two more for each of OF_NAME_MAX runs, and a listing.

    Raises:
        NotFound: nothing has that name; the message has the run ids that are most like it, or of a rule or a model
            the command that shows it.
    """
    if is_run_id(text) and (found := _run(clients, text, retry_s=retry_s)):
        return found
    if text == LATEST and not _exists(text):
        return _latest_run(clients, is_to_change=is_to_change)
    for name in _status_names(clients, text):
        status = read_document(clients, name, retry_s=retry_s)
        if status is not None:
            of_event = _of_status(clients, status, retry_s=retry_s)
            latest = (
                of_event if _is_object(clients, text) else _latest_of_file(clients, of_event, retry_s=retry_s)
            )
            _note_model(clients, text, latest)
            file = local_file(clients, text)
            if file is None or isinstance(latest, Drop) or latest.record.source.object_name is None:
                return latest
            return _of_content(clients, file, latest, is_to_change=is_to_change)
    if _is_path(text) and not _exists(text):
        in_inbox = f"{REQUESTS_PREFIX}{in_team(clients.context.team, PurePosixPath(text).name)}"
        raise NotFound(f"There is no file {text!r}. To name a request in the inbox: {in_inbox}")
    rules = list_at(read_document(clients, BOOK_OBJECT, retry_s=retry_s), "rules")
    if any(isinstance(rule, dict) and rule.get("rule_id") == text for rule in rules):
        raise NotFound(
            f"{text!r} is a rule, not a run. "
            f"Its state and its last run: trainmaster rules show {shlex.quote(text)}"
        )
    if text not in (ids := run_ids_of(clients, text)):
        raise NotFound(f"{text!r} is a group of {len(ids)} runs. List them: trainmaster ls --group {text}")
    if _SHORT_ID.fullmatch(text) and (short := _run_of_short_id(clients, text)):
        return short
    rows = list_runs(clients, Filters(), limit=NEAR_MAX).rows
    if (latest_id := next((row.run_id for row in rows if row.model_name == text), None)) is not None:
        raise NotFound(
            f"{text!r} is a model, not a run. Its latest run is {latest_id}. "
            f"All its runs: trainmaster ls --model {shlex.quote(text)}"
        )
    run_ids = [row.run_id for row in rows]
    newest = {base_of(run_id): run_id for run_id in reversed(run_ids)}
    near = nearest_names(text, run_ids) or nearest_of(text, newest)
    if PurePosixPath(text).stem.lower() in GENERAL_NAMES:
        near = "A run of such a file is named after its model: give the file's path, or `latest`."
    raise NotFound(
        f"No run, file or message {text!r} in {clients.context.title}. {near}{' ' if near else ''}List the runs: trainmaster ls"
    )


def run_ids_of(clients: Clients, text: str) -> tuple[str, ...]:
    """The ids of all runs of the group, if the text is the id of one; else the text alone. Costs at most one read."""
    first = _run(clients, run_id_in_group(text, 1)) if has_form_of_run_id(text) else None
    group = first.record.source.group if first is not None else None
    return (text,) if group is None else group.run_ids


def group_id_of(clients: Clients, text: str) -> str:
    """The id of a group, if the text is that or means a run of it.

    Raises:
        NotFound: it is neither.
    """
    if text not in run_ids_of(clients, text):
        return text
    group = find_run(clients, text).record.source.group
    if group is None:
        raise NotFound(f"{text!r} is no run of a matrix, so it has no group.")
    return group.id


def _latest_run(clients: Clients, *, is_to_change: bool) -> Run:
    rows = list_runs(clients, Filters(team=clients.context.team), limit=1).rows
    if not rows:
        raise NotFound(f"There is no run yet in {clients.context.title}.")
    if is_to_change and clients.context.state is None:
        raise ClientRefused(f"The latest run may be another user's. Name it by its id: {rows[0].run_id}")
    return read_run(clients, rows[0].run_id)


def _run_of_short_id(clients: Clients, text: str) -> Run | None:
    """The run whose id ends with a part that begins or ends so, among the newest.

    Raises:
        NotFound: there are several.
    """
    found = list_runs(clients, Filters(text=text), limit=NEAR_MAX, scanned_max=OF_NAME_SCANNED_MAX).rows
    ends = {row.run_id: row.run_id.rpartition("-")[2] for row in found}
    ids = [run_id for run_id, end in ends.items() if end.startswith(text) or end.endswith(text)]
    if len(ids) > 1:
        listed = "".join(f"\n  {each}" for each in ids[:OF_NAME_MAX])
        raise NotFound(f"{text!r} is part of {len(ids)} ids. Write more of one:{listed}")
    return read_run(clients, ids[0]) if ids else None


def _note_model(clients: Clients, text: str, found: Run | Drop) -> None:
    """Say so if a file or message was found by a name that a model has too, whose latest run is another one."""
    if clients.note is None or set(text) & set("./") or isinstance(found, Drop):
        return
    rows = list_runs(clients, Filters(model=text), limit=1, scanned_max=NEAR_MAX).rows
    if rows and rows[0].run_id != found.record.run_id:
        clients.note(
            f"{text!r} is a file or message here, and a model too, whose latest run is {rows[0].run_id}."
        )


def _of_status(clients: Clients, status: dict[str, Any], *, retry_s: float | None) -> Run | Drop:
    run_id = status.get("run_id") if status.get("state") != IGNORED else None
    run = _run(clients, run_id, retry_s=retry_s) if isinstance(run_id, str) and is_run_id(run_id) else None
    return Drop(status=status) if run is None else replace(run, status=status)


def _latest_of_file(clients: Clients, found: Run | Drop, *, retry_s: float | None) -> Run | Drop:
    """The run that `trainmaster again` started from the file of this run, if it is newer; else what was found.

    A run of another model is left out: requests of one name in several folders share their place below AGAIN_FOLDER.
    """
    if isinstance(found, Drop) or not (found.status or {}).get("dropped_name"):
        return found
    status = read_document(clients, status_object(again_object(found.record)), retry_s=retry_s)
    repeated = None if status is None else _of_status(clients, status, retry_s=retry_s)
    if not isinstance(repeated, Run) or repeated.record.model_name != found.record.model_name:
        return found
    return max(found, repeated, key=lambda each: each.record.source.event_time)


def local_file(clients: Clients, text: str) -> LocalFile | None:
    """The file on the user's machine that the text names, if any; never in a service."""
    return None if clients.note is None else read_local_file(text)


def is_from(clients: Clients, file: LocalFile, run: Run) -> bool:
    """Whether the run was started from the file's content; False where its request is not kept."""
    text = submitted_text(clients, run.record)
    return text is not None and file.is_source_of(text)


def _of_content(clients: Clients, file: LocalFile, found: Run, *, is_to_change: bool) -> Run:
    """The latest run of the file's content, among those that files of its name started; `found` is the latest of all.

    Raises:
        NotFound, ClientRefused: as `find_run`.
    """
    if clients.note is None or is_from(clients, file, found):
        return found
    name = PurePosixPath(file.path).name
    others = _others_of_name(clients, found)
    if (matching := next((run for run in others if is_from(clients, file, run)), None)) is not None:
        clients.note(
            f"{matching.record.run_id} is the run of {file.path}. "
            f"Another {name}, or another version of it, started {found.record.run_id} later."
        )
        return matching
    runs = [found, *others]
    listed = "".join(f"\n  {each.record.run_id} ({each.record.model_name or 'rejected'})" for each in runs)
    if is_to_change:
        raise ClientRefused(
            f"{file.path} differs from each request that a file of this name has started: it was edited since, or it is "
            f"another file. Name the run by its id:{listed}"
        )
    matching = next((run for run in runs if file.may_be_of_model(_model_of(clients, run))), None)
    if matching is None:
        raise NotFound(
            f"{file.path} has started no known run. It has the model {file.model_name!r}, and the runs of files named "
            f"{name!r} have others:{listed}\nName one of them by its id, or submit the file: "
            f"{shlex.join(['trainmaster', 'submit', file.path])}"
        )
    clients.note(
        f"{file.path} differs from the request of {matching.record.run_id}: it was edited since, or another {name} "
        "started that run."
    )
    return matching


def _model_of(clients: Clients, run: Run) -> str | None:
    """Of a rejected run the one that its text names; None if that is unknown."""
    if run.record.model_name is not None:
        return run.record.model_name
    text = submitted_text(clients, run.record) or ""
    return LocalFile(path="", content=text.encode()).model_name


def _others_of_name(clients: Clients, run: Run) -> list[Run]:
    """The newest other runs that uploads with the name of this run's file started, newest first."""
    base, names = base_of(run.record.run_id), names_of_file(run.record)
    rows = list_runs(
        clients, Filters(text=f"{base}-"), limit=2 * OF_NAME_MAX, scanned_max=OF_NAME_SCANNED_MAX
    ).rows
    run_ids = [row.run_id for row in rows if base_of(row.run_id) == base and row.run_id != run.record.run_id]
    found = [_run(clients, run_id) for run_id in run_ids[:OF_NAME_MAX]]
    return [each for each in found if each is not None and each.record.source.object_name in names]


def base_of(run_id: str) -> str:
    """What the ids of all runs of a file begin with."""
    return run_id.rsplit("-", 2)[0]


def names_of_file(record: RunRecord) -> set[str | None]:
    """The objects that `submit` and `again` make of the file that started the run, and the run's own."""
    uploaded = f"{REQUESTS_PREFIX}{in_team(record.source.team, _file_name(record))}"  # by `submit`
    return {record.source.object_name, again_object(record), uploaded}


def again_object(record: RunRecord) -> str:
    """Where the inbox has the request of an uploaded file once `trainmaster again` submitted it."""
    return f"{REQUESTS_PREFIX}{in_team(record.source.team, f'{AGAIN_FOLDER}/{_file_name(record)}')}"


def _file_name(record: RunRecord) -> str:
    suffix = ".yaml" if record.source.rule_id is None else ".json"  # a rule's filled request is JSON
    return PurePosixPath(record.source.object_name or f"{record.model_name}{suffix}").name


def _status_names(clients: Clients, text: str) -> list[str]:
    name = text.removeprefix(object_uri(clients.context.inbox_bucket, ""))
    file = local_file(clients, text) if PurePosixPath(name).stem.lower() in GENERAL_NAMES else None
    uploaded = in_team(clients.context.team, Path(name).name)
    named = in_team(clients.context.team, inbox_name(Path(name).name, file.model_name)) if file else uploaded
    of_file = status_object(name if _is_object(clients, text) else f"{REQUESTS_PREFIX}{uploaded}")
    is_elsewhere = name.startswith("gs://") or (_is_path(text) and not _exists(text))
    return [
        *([] if named == uploaded else [status_object(f"{REQUESTS_PREFIX}{named}")]),
        *([] if is_elsewhere else [of_file]),
        message_status_object(message_id=text, idempotency_key=None),
        message_status_object(message_id="", idempotency_key=text),
        *([] if is_elsewhere or _is_object(clients, text) else [status_object(name)]),  # outside requests/
    ]


def _is_object(clients: Clients, text: str) -> bool:
    """Whether the text is the full name of an object in the inbox."""
    return text.startswith((object_uri(clients.context.inbox_bucket, ""), REQUESTS_PREFIX, RULES_PREFIX))


def _is_path(text: str) -> bool:
    """Whether the text can only mean a file on this machine, or a message with a key that has a slash."""
    return "/" in text and not text.startswith(("gs://", REQUESTS_PREFIX, RULES_PREFIX))


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # for example: the name is too long
        return False


def _run(clients: Clients, run_id: str, *, retry_s: float | None = None) -> Run | None:
    document = read_document(clients, record_object(run_id), retry_s=retry_s)
    if document is None:
        return None
    if document.get("schema") != RECORD_SCHEMA:
        raise NotFound(
            f"The record of {run_id} is {document.get('schema')!r}, which this version cannot read."
        )
    try:
        return Run(document=document, record=decoded(RunRecord, document))
    except (KeyError, TypeError, ValueError) as fault:
        raise NotFound(f"The record of {run_id} is damaged: {fault}") from fault


def read_run(clients: Clients, run_id: str, *, retry_s: float | None = None) -> Run:
    """The run with this id; `retry_s` as in `read_document`.

    Raises:
        NotFound: no run has this id, or its record cannot be read.
    """
    found = _run(clients, run_id, retry_s=retry_s)
    if found is None:
        raise NotFound(f"The record of {run_id} does not exist in {clients.context.title}.")
    return found


def read_document(clients: Clients, name: str, *, retry_s: float | None = None) -> dict[str, Any] | None:
    """The ledger's JSON document with this name, or None. Limits and errors are those of `read_json`."""
    return read_json(clients.storage, clients.context.ledger_bucket, name, retry_s=retry_s)
