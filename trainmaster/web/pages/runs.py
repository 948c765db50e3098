"""The list of runs."""

from typing import Any

from trainmaster.client.runs.listing import Filters, RunList, list_runs
from trainmaster.web.source import Age
from trainmaster.web.subject import ApiRoute, Ask, Page, PageRoute, Parameter, Subject

LIMIT, LIMIT_MAX = 50, 1000


def _listed(ask: Ask) -> RunList:
    limit = ask.whole("limit", LIMIT, LIMIT_MAX)
    filters = Filters(model=ask.query.get("model"))
    return ask.source.read(
        ("runs", filters.model, limit), Age.LIVE, lambda clients: list_runs(clients, filters, limit=limit)
    )


def runs(ask: Ask) -> Page:
    """The newest runs."""
    return Page(title="Runs", template="runs.html", values={"found": _listed(ask)}, command="trainmaster ls")


def document(ask: Ask) -> dict[str, Any]:
    """schemas/run_list.v1.schema.json."""
    return _listed(ask).document


SUBJECT = Subject(
    pages=[PageRoute(path="/runs", show=runs)],
    api=[
        ApiRoute(
            path="/runs",
            summary="The newest runs.",
            read=document,
            schema="run_list.v1",
            parameters=[Parameter(name="limit", description="the most runs", is_number=True)],
        )
    ],
)
