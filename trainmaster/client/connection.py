"""`from trainmaster import connect`: what the verbs of the command do, as objects. See docs/reference/python.md"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Self

from trainmaster.client.clients import Clients
from trainmaster.client.context import choose_context, refuse_elsewhere, settings_folder
from trainmaster.client.errors import ClientRefused, Damaged, NotFound, RequestRefused
from trainmaster.client.explaining.explanation import explain_run
from trainmaster.client.files.download import download, false_claims
from trainmaster.client.files.listing import RemoteFile, champion_files, listed_model, model_files
from trainmaster.client.find import Run, find_run
from trainmaster.client.logs.follow import RunLog, find_run_to_follow
from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.read import LINES_MAX
from trainmaster.client.logs.survive import LOCAL_POLL_S, POLL_S, look_until
from trainmaster.client.plan.plan import Plan, plan_with_ledger
from trainmaster.client.rules import champions
from trainmaster.client.rules.orders import WAIT_S, cancel_run
from trainmaster.client.runs.facts import SHOWN_STATES, cost_so_far, state_of
from trainmaster.client.runs.listing import SCANNED_MAX, Filters, KeptIndex, list_runs
from trainmaster.client.runs.repairs import repair_of
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.send import start_run
from trainmaster.client.submission.settings import RequestSetting, parse_settings
from trainmaster.client.submission.source import NO_FILE, STDIN, RequestSource, json_text, read_source
from trainmaster.client.submission.terms import deployed_terms
from trainmaster.client.wait import wait_for_end, wait_until_settled
from trainmaster.orchestrator.core.documents.placing import lines_of_fault
from trainmaster.orchestrator.core.requests.matrix import MATRIX
from trainmaster.orchestrator.core.runs.record import RunRecord, metrics_of
from trainmaster.orchestrator.core.runs.states import RunState

__all__ = ["Connection", "NotFound", "RequestRefused", "RunFailed", "connect"]
LOG = logging.getLogger("trainmaster")
"""Gets what the command prints beside a result. Without handlers, Python prints it on standard error."""
TEXT_MAX, SECONDS_MAX = 1000, 10**9
Source = str | Path | Mapping[str, Any] | None  # Any: a document, which is checked


class RunFailed(Exception):
    """A run ended without success: the message says how, why, and the likely repair."""

    run: "RunHandle"


def connect(context: str | None = None) -> "Connection":
    """The context that the command would use here, or `local`, `local:DIR` or `PROJECT/REGION`.

    Raises NoContext, with the choices, if none was chosen or it does not answer, and UnknownContext for another text.
    """
    name, folder = None if context is None else _text_of("context", context), settings_folder()
    found = choose_context(name, os.environ, directory=Path.cwd(), settings=folder, named_by="connect()")
    return Connection(Clients(found, note=LOG.warning))


class Connection:
    """A context, for one thread at a time; the end of a `with` block, or of the process, closes its connections.

    Where no service answers, or refuses the user, methods raise NoStack or the official clients' own errors. Those that
    change something raise NoContext for the stack of another folder that nothing has chosen.
    """

    def __init__(self, clients: Clients) -> None:
        self.context = clients.context
        self._clients = clients

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clients.__exit__(None, None, None)

    def check(self, request: Source) -> Examination:
        """What `submit` would find; nothing is sent. ClientRefused: there is no such file, or its script has no folder."""
        return examination_of(_source_of(request), deployed_terms(self._clients))

    def plan(self, request: Source) -> Plan:
        """What would happen to the request, as `trainmaster plan` shows it. Raises as `submit`."""
        found = self.check(request)
        if (plan := plan_with_ledger(self._clients, found, now=datetime.now(UTC))) is None:
            raise RequestRefused(found.refusal, found.faults)
        return plan

    def submit(
        self,
        request: Source = None,
        *,
        script: str | Path | None = None,
        args: Sequence[str] = (),
        name: str | None = None,
        image: str | None = None,
        machine: str | None = None,
        gpu: str | None = None,
        workers: int | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - the command's --set. Any: a document, which is checked
        matrix: Mapping[str, Sequence[str | float]] | None = None,
        key: str | None = None,
    ) -> "RunHandle":
        """Start the run of a path or a document with these changes, or of a script or image, and return it once recorded.

        They mean what the command's options do; of a matrix, the first run is returned. Requests with the same `key` start
        one run. Raises RequestRefused if it has faults, and nothing was sent, or if the service refuses it; ClientRefused
        for wrong arguments, files that cannot be read or packed, and a key that has started another request; and TimedOut
        if the service has not read the upload before under this name.
        """
        refuse_elsewhere(self.context)
        texts = {"key": key, "name": name, "image": image, "machine": machine, "gpu": gpu, "script": script}
        _ = [_text_of(what, text) for what, text in texts.items() if text is not None]
        if isinstance(args, str | bytes) or not isinstance(args, Iterable):
            raise ClientRefused(f"args: expected a list of texts, found {args!r:.80}.")
        edits = Edits(args=tuple(args), name=name, image=image, machine=machine, gpu=gpu, workers=workers)
        json_text([*edits.args, workers], "args and workers")
        program, settings = None if script is None else Path(script), _settings_of(set, matrix)
        edits = replace(edits, script=program, settings=settings)
        source = _source_of(request, is_optional=bool(program or image))
        found = examination_of(source, deployed_terms(self._clients), edits, is_message=key is not None)
        for warning in found.warnings:
            LOG.warning("\n".join(lines_of_fault(warning, found.faulty, "warning")))
        for why, names in (each for packed in found.archives for each in packed.left_out.items()):
            LOG.warning(
                "Not packed, because %s: %s%s", why, ", ".join(names[:5]), " and others" * bool(names[5:])
            )
        sent, is_recorded = start_run(self._clients, found, key=key)
        if not is_recorded:
            LOG.warning("The service has not recorded %s yet.", sent.run_id)
        return RunHandle(sent.run_ids[0], self._clients)

    def run(self, name: str = "latest") -> "RunHandle":
        """The run of this id or its last part, of a file or a message, or the latest. NotFound: there is none."""
        found = find_run(self._clients, _text_of("name", name))
        return RunHandle(found.record.run_id, self._clients, found)

    def runs(
        self, *, state: str | None = None, model: str | None = None, limit: int = 20
    ) -> Iterator["RunHandle"]:
        """The newest `limit` runs in this state and of this model, among 20,000; each that is used costs a read more."""
        if state is not None and state not in SHOWN_STATES:
            raise ClientRefused(f"state: expected one of {', '.join(SHOWN_STATES)}; found {state!r:.80}.")
        _check_number("limit", limit, int, 1, SCANNED_MAX)
        model = None if model is None else _text_of("model", model)
        filters = Filters(states=frozenset({state} if state else ()), model=model, team=self.context.team)
        rows = list_runs(self._clients, filters, limit=limit).rows
        return (RunHandle(row.run_id, self._clients) for row in rows)

    def models(self) -> list[champions.ListedModel]:
        """The models of the newest 20,000 runs, and those with a champion."""
        found, _ = champions.list_champions(self._clients)
        return champions.models_of(KeptIndex(self._clients).look().rows, found)

    def champion(self, model: str) -> "ChampionHandle":
        """The best model of this name; of another team, `<team>/<name>`. NotFound: it has none."""
        return _champion_of(self._clients, _text_of("model", model))


@dataclass(eq=False)
class RunHandle:
    """A run, as it was last read: when something of it was first asked for, by `refresh`, or by a wait."""

    id: str
    _clients: Clients = field(repr=False)
    _run: Run | None = field(default=None, repr=False)

    def _read(self) -> Run:
        self._run = find_run_to_follow(self._clients, self.id)
        return self._run

    @property
    def _found(self) -> Run:
        return self._run or self._read()

    @property
    def document(self) -> dict[str, Any]:
        """schemas/run_record.v2.schema.json, as `trainmaster status -o json` prints it."""
        return self._found.document

    @property
    def state(self) -> str:
        """For example `running` or `succeeded`; `timed_out` if its timeout ended it."""
        return state_of(self._found.record)

    @property
    def metrics(self) -> dict[str, float]:
        """Of its model, or before there is one, of its job when it was last seen running."""
        return dict(metrics_of(self._found.record))

    @property
    def cost(self) -> Decimal | None:
        """What it cost, or about what it has cost so far, in the currency of the price table; None if unknown."""
        record = self._found.record
        cost = record.completion.cost if record.completion else None
        return cost.total if cost else cost_so_far(record, datetime.now(UTC))

    @property
    def model(self) -> "ModelHandle":
        """What it saved. NotFound: it has no model, and the message says why."""
        model, _ = listed_model(self._found)
        files = partial(model_files, self._clients, self._found)
        return ModelHandle(self.id, model.uri, model.format, self._clients, files)

    @property
    def group(self) -> tuple["RunHandle", ...]:
        """All runs of its matrix, in the order of the combinations; without one, the run alone."""
        group = self._found.record.source.group
        return tuple(RunHandle(each, self._clients) for each in group.run_ids) if group else (self,)

    def refresh(self) -> Self:
        """Read it again, also while the services restart, and return it. NotFound: there is no such record."""
        self._read()
        return self

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until it has succeeded, and has been compared with the champion.

        Raises RunFailed if it ended in another way, and TimedOut, a TimeoutError, after `timeout` seconds: it continues.
        """
        _check_number("timeout", 0 if timeout is None else timeout, int | float, 0, SECONDS_MAX)
        ended = wait_for_end(self._clients, self.id, timeout_s=timeout)
        self._run = wait_until_settled(self._clients, ended)
        if self._run.record.state is RunState.SUCCEEDED:
            return self
        failed = RunFailed(_why_failed(self._run.record))
        failed.run = self
        raise failed

    async def wait_async(self) -> Self:
        """The same, while other tasks run. asyncio.timeout limits it."""
        while not (await asyncio.to_thread(self._read)).record.ended:  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(POLL_S if self._clients.context.state is None else LOCAL_POLL_S)
        return await asyncio.to_thread(self.wait)

    def log(self, tail: int = 1000) -> list[LogLine]:
        """The last lines, at most 100,000, the oldest first. Each prints as its replica and its `text`."""
        _check_number("tail", tail, int, 1, LINES_MAX)
        return RunLog(self._clients, self._read()).last(tail)[0]

    def _looks(self) -> Iterator[list[LogLine]]:
        log = RunLog(self._clients, self._found)
        return look_until(lambda: log.is_over, self._clients.context, log.look)

    def follow(self) -> Iterator[LogLine]:
        """All lines, and new ones until the run has ended."""
        return (line for lines in self._looks() for line in lines)

    async def follow_async(self) -> AsyncIterator[LogLine]:
        """The same, while other tasks run."""
        looks = self._looks()
        while (lines := await asyncio.to_thread(next, looks, None)) is not None:
            for line in lines:
                yield line

    def why(self) -> dict[str, Any]:
        """Every step from its event to its model: schemas/explanation.v1.schema.json"""
        return explain_run(self._clients, self._read(), datetime.now(UTC)).document

    def cancel(self, timeout: float = WAIT_S) -> Self:
        """Order its end, and wait until the order is carried out. A run that has ended stays as it is.

        Raises ClientRefused if the service refuses that, and TimedOut after `timeout` seconds: the order stays given.
        """
        refuse_elsewhere(self._clients.context)
        _check_number("timeout", timeout, int | float, 0, SECONDS_MAX)
        if not (found := self._read()).record.ended:
            cancel_run(self._clients, found.record, timeout_s=timeout)
        return self.refresh()


@dataclass(frozen=True)
class ModelHandle:
    """The files of a model at `uri`. `format`, such as `saved_model`, is None if it is unknown, and of a champion."""

    run_id: str
    uri: str
    format: str | None
    _clients: Clients = field(repr=False)
    _files: Callable[[], list[RemoteFile]] = field(repr=False)

    def download(self, folder: str | Path | None = None, *, overwrite: bool = False) -> Path:
        """Download and verify the files, and return the folder, by default one of the run's id. Equal files are kept.

        Raises ClientRefused, and changes nothing, if a file would be replaced; Damaged if an object is not what the
        record lists, or the model's manifest is wrong about a file; and OSError if a file cannot be written.
        """
        files, target = self._files(), Path(self.run_id if folder is None else _text_of("folder", folder))
        download(self._clients, files, target, overwrite=overwrite)
        if (false := next(false_claims(files, target), None)) is not None:
            raise Damaged(f"The model's manifest is wrong about {false}. The files are what the run left.")
        return target


@dataclass(frozen=True)
class ChampionHandle(ModelHandle):
    """The best model of a name, in the copy that no job can change. `value` is that of the metric that decided."""

    model_name: str
    value: float
    document: dict[str, Any] = field(repr=False)

    def rollback(self, to_run: str | None = None, *, timeout: float = WAIT_S) -> "ChampionHandle":
        """Restore the champion before it, or that of `to_run`, and return that one.

        Raises ClientRefused if there is none, and TimedOut if the service has not answered within `timeout` seconds.
        """
        refuse_elsewhere(self._clients.context)
        champions.roll_back(self._clients, self.model_name, to_run, timeout_s=timeout)
        return _champion_of(self._clients, self.model_name)


def _text_of(what: str, value: object) -> str:
    """The value as a text or path. Raises: ClientRefused: it is not one, or has a NUL or half a character."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    sound = text.replace("\0", "").encode(errors="ignore").decode() if isinstance(text, str) else ""
    if not isinstance(text, str) or text != sound or not 0 < len(text) <= TEXT_MAX:
        raise ClientRefused(f"{what}: expected a text of 1 to {TEXT_MAX} characters, found {value!r:.80}.")
    return text


def _check_number(what: str, value: Any, kind: Any, least: int, most: int) -> None:  # Any: bad input, too
    if not isinstance(value, kind) or not least <= value <= most:
        raise ClientRefused(f"{what}: expected {least} to {most}, found {value!r:.80}.")


def _why_failed(record: RunRecord) -> str:
    failure, problems = record.failure, "; ".join(record.problems)
    repair = repair_of(failure, record.run_id, record) if failure else None
    text = f"{record.run_id} {state_of(record)}: {failure.message if failure else problems}"
    return f"{text}\nLikely repair: {repair}" if repair else text


def _champion_of(clients: Clients, name: str) -> ChampionHandle:
    found, reign = champions.find_reigning(clients, name)
    files = partial(champion_files, clients, reign)
    return ChampionHandle(
        reign.run_id, reign.model_uri, None, clients, files, name, reign.value, found.document
    )


def _source_of(request: Source, *, is_optional: bool = False) -> RequestSource:
    if request is None and is_optional:
        return RequestSource(file=NO_FILE)
    if isinstance(request, str | os.PathLike):
        path = _text_of("request", request)
        return read_source(f"./{path}" if path == STDIN else path, BytesIO())
    if isinstance(request, Mapping):
        return RequestSource(file="request.json", content=json_text(request, "request", 2).encode())
    raise ClientRefused(f"Expected a request's path, a document, script= or image=; found {request!r:.80}.")


def _settings_of(values: object, matrix: object) -> tuple[RequestSetting, ...]:
    texts: list[str] = []
    for name, prefix, given in (("set", "", values), (MATRIX, f"{MATRIX}.", matrix)):
        if not isinstance(given, Mapping | None):
            raise ClientRefused(f"{name}: expected a mapping, found {given!r:.80}.")
        texts += [
            f"{prefix}{_text_of(name, key)}={json_text(value, name)}" for key, value in (given or {}).items()
        ]
    return parse_settings(texts)
