"""The run that an address means, with what is read of it."""

from contextlib import suppress
from typing import TYPE_CHECKING

from trainmaster.client.errors import NotFound
from trainmaster.client.explaining.explanation import Explanation, explain_run
from trainmaster.client.find import Drop, Run, find_run, find_run_or_drop, read_run
from trainmaster.orchestrator.core.names import has_form_of_run_id
from trainmaster.web.pages.run.monitor import Monitored, RunMonitor
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

RUN_ID = "run_id"


def found_of(ask: Ask) -> Run | Drop:
    """What the path names: a run by its id, or a file or message, with or without a run.

    Raises:
        NotFound: nothing has that name.
    """
    text = ask.path[RUN_ID]
    return ask.source.read(("found", text), AnswerAge.LIVE, lambda clients: find_run_or_drop(clients, text))


def run_of(ask: Ask) -> Run:
    """The run that the path names.

    Raises:
        NotFound: there is none.
    """
    text = ask.path[RUN_ID]
    return ask.source.read(("run", text), AnswerAge.LIVE, lambda clients: find_run(clients, text))


def monitored_run(ask: Ask, run_id: str) -> Monitored:
    """The run as it is now, shared by all pages that show it.

    Raises:
        NotFound: there is no such run.
    """

    def make(clients: "Clients") -> RunMonitor:
        return RunMonitor(clients, read_run(clients, run_id))

    return ask.source.follow(("monitor", run_id), AnswerAge.LIVE, make, RunMonitor.look)


def seen_of(ask: Ask) -> Monitored | Drop:
    """The run that the path names, as it is now, or the file or message without one.

    Raises:
        NotFound: nothing has that name.
    """
    text = ask.path[RUN_ID]
    if has_form_of_run_id(text):  # the monitor reads the record itself
        with suppress(NotFound):
            return monitored_run(ask, text)
    found = found_of(ask)
    return found if isinstance(found, Drop) else monitored_run(ask, found.record.run_id)


def explanation_of(ask: Ask, run: Run) -> Explanation:
    """Why the run is as it is; read again once its record changes, or its place in the queue may have."""
    key = ("explanation", run.record.run_id, run.record.updated_at)
    return ask.source.read(key, AnswerAge.SLOW, lambda clients: explain_run(clients, run, ask.now))
