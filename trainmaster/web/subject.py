"""The types of pages, of the API's resources and of actions. Each module of `pages` has one `SUBJECT`; `app` serves them all."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from trainmaster.client.clients import Clients
from trainmaster.web.faults import WrongQuery
from trainmaster.web.iap import Person
from trainmaster.web.people import clients_for
from trainmaster.web.source import ConsoleSource

_WHOLE = re.compile(r"[0-9]{1,9}")
NAMED_MAX = 10
"""Unknown parameters that a message names."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request for a page, a document or an action."""

    source: ConsoleSource
    now: datetime
    path: Mapping[str, str] = field(default_factory=dict)
    """The variable parts of the path, decoded."""
    query: QueryParams = field(default_factory=QueryParams)
    form: Mapping[str, str] = field(default_factory=dict)
    """The fields of a form, or of a JSON body, of an action; of repeated ones the last."""
    person: Person | None = None
    """Who asks, in a team's console; None where the console acts with the credentials of its only user."""

    def clients_of(self, team: str | None) -> Clients:
        """The clients of every change to what belongs to this team. Raises: NotTheirs: the person does not act for it."""
        return self.source.clients if self.person is None else clients_for(self.source, self.person, team)

    def whole(self, name: str, default: int, most: int) -> int:
        """A positive whole number in the query.

        Raises:
            WrongQuery: it is another text, or out of range.
        """
        text = self.query.get(name) or str(default)
        if not _WHOLE.fullmatch(text) or not 0 < int(text) <= most:
            raise WrongQuery(f"{name}: expected a whole number from 1 to {most}, found {text[:40]!r}")
        return int(text)

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Refuse names in the query that no reader knows: a misspelt filter would otherwise find everything.

        Raises:
            WrongQuery: there are some; the message has each, and the known names.
        """
        # `key` is of an earlier session, in an address that was kept.
        unknown = sorted(set(self.query) - {*known, "key"})
        if unknown:
            names = ", ".join(repr(each[:40]) for each in unknown[:NAMED_MAX])
            allowed = f"Allowed: {', '.join(known)}." if known else "No parameters are allowed here."
            raise WrongQuery(
                f"Unknown {'parameter' if len(unknown) == 1 else 'parameters'} {names}. {allowed}"
            )

    def address(self, path: str, **changes: str | None) -> str:
        """`path` with this query, in which `changes` replace or, if None, remove values."""
        kept = [(name, value) for name, value in self.query.multi_items() if name not in changes]
        query = urlencode([*kept, *((name, value) for name, value in changes.items() if value is not None)])
        return f"{path}?{query}" if query else path


@dataclass(frozen=True, kw_only=True)
class ConsolePage:
    """One page as it is now.

    Attributes:
        title: of the window, and the page's heading.
        template: below `templates/`; it extends `page.html` and fills its block `content`.
        values: the template's. Only plain text, numbers, times and dataclasses of them: all of it is escaped.
        command: what prints the same in a terminal, for example `trainmaster ls --state failed`.
        is_final: nothing on it will change; the browser does not ask again.
        is_fault: it stands for the page that could not be shown, and the browser loads that once it can be.
        is_lost: it is a fault, for which the browser keeps the last content of an open page.
        status: of HTTP; 400 if the page says what is wrong with its address.
    """

    title: str
    template: str
    values: Mapping[str, Any]
    command: str
    is_final: bool = False
    is_fault: bool = False
    is_lost: bool = False
    status: int = 200


@dataclass(frozen=True, kw_only=True)
class PageRoute:
    """A page's address: Starlette's form, for example `/runs/{run_id}`.

    With `takes_form`, it is shown on POST, with the form's fields in `Ask.form`. It changes nothing, so that it needs no
    token; it must be asked by the console's own pages all the same.
    """

    path: str
    show: Callable[[Ask], ConsolePage]
    takes_form: bool = False


@dataclass(frozen=True, kw_only=True)
class File:
    """A file for the browser to save under `name`."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class FileRoute:
    """A file's address, for example `/runs/{run_id}/study.csv`."""

    path: str
    make: Callable[[Ask], File]


@dataclass(frozen=True, kw_only=True)
class QueryParameter:
    """A value in the query of an API's resource, which refuses others."""

    name: str
    description: str
    is_number: bool = False
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class ApiRoute:
    """A JSON document under /api/v1.

    Attributes:
        path: below /api/v1, for example `/runs/{run_id}`.
        summary: what it returns, in one sentence.
        read: the document, the same as the command prints with `-o json`.
        schema: the name of its schema in schemas/, for example `run_list.v1`; None for an object without one.
        parameters: of its query, or with `takes_form` the fields of its form or JSON object.
        takes_form: as of a PageRoute.
    """

    path: str
    summary: str
    read: Callable[[Ask], Mapping[str, Any] | Sequence[Any]]
    schema: str | None = None
    parameters: Sequence[QueryParameter] = ()
    takes_form: bool = False


@dataclass(frozen=True, kw_only=True)
class Field:
    """What a person fills in before an action; `choices` makes it a choice."""

    name: str
    label: str
    value: str = ""
    choices: Sequence[str] = ()
    required: bool = False


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What an action will do, shown before it is done.

    Attributes:
        title: as a question, for example `Cancel the run cassava-…?`
        effects: one sentence each.
        command: what does the same in a terminal.
        button: the verb on the button that does it, for example `Cancel the run`.
        fields: what is asked before.
        back: the page to return to.
        refusal: why it cannot be done now; empty if it can.
        is_destructive: it ends or removes something.
    """

    title: str
    effects: Sequence[str]
    command: str
    button: str
    back: str
    fields: Sequence[Field] = ()
    refusal: str = ""
    is_destructive: bool = False


@dataclass(frozen=True, kw_only=True)
class ActionOutcome:
    """What an action did. `go_to` is the page that shows it; `document` is the API's answer."""

    message: str
    go_to: str
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ConsoleAction:
    """Changes something. GET of `path` shows the proposal; POST does it, as does POST under /api/v1.

    Attributes:
        path: for example `/runs/{run_id}/cancel`.
        summary: what it does, in one sentence.
        propose: may raise what pages may.
        perform: may raise what pages may; the form's fields are in `Ask.form`.
    """

    path: str
    summary: str
    propose: Callable[[Ask], Proposal]
    perform: Callable[[Ask], ActionOutcome]


@dataclass(frozen=True, kw_only=True)
class ConsoleSubject:
    """The pages, files, documents and actions about one thing."""

    pages: Sequence[PageRoute] = ()
    files: Sequence[FileRoute] = ()
    api: Sequence[ApiRoute] = ()
    actions: Sequence[ConsoleAction] = ()
