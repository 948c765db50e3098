"""The first page."""

from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.web.source import Age
from trainmaster.web.subject import Ask, Page, PageRoute, Subject


def overview(ask: Ask) -> Page:
    """What runs, what waits, what failed."""
    found = ask.source.read(("newest", 20), Age.LIVE, lambda clients: list_runs(clients, Filters(), limit=20))
    return Page(
        title="Overview", template="overview.html", values={"runs": found.rows}, command="trainmaster ls"
    )


SUBJECT = Subject(pages=[PageRoute(path="/", show=overview)])
