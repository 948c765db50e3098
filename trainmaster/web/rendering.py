"""Turns a page into HTML. Every value is escaped, so no user's data becomes markup."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from trainmaster.client.runs.facts import state_of
from trainmaster.client.shown.cost_lines import row_cost
from trainmaster.client.shown.run_lines import QUEUED_LONG, queued_text
from trainmaster.client.study.study import number
from trainmaster.client.terminal import size_text, visible
from trainmaster.client.times import span
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.policy.currency import shown_money
from trainmaster.version import VERSION
from trainmaster.web.subject import ConsolePage

TEMPLATES = Path(__file__).parent / "templates"
NAVIGATION = (
    ("/", "Overview"),
    ("/runs", "Runs"),
    ("/models", "Models"),
    ("/rules", "Rules"),
    ("/queue", "Queue and limits"),
    ("/costs", "Costs"),
    ("/notices", "Notices"),
    ("/dead-letters", "Dead letters"),
    ("/try", "Try a request"),
)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What surrounds every page.

    Attributes:
        where: the context's title.
        writable: whether buttons that change something are shown.
        token: the session's, for forms; empty where nothing may be changed.
        poll_s: seconds between two looks at the page; 0 where the server sends changes.
        path: the page's address without the query.
        person: who is signed in, through Identity-Aware Proxy; empty for the owner of this machine's credentials.
    """

    where: str
    writable: bool
    token: str
    poll_s: float
    path: str
    person: str = ""


def whole_page(page: ConsolePage, frame: Frame) -> str:
    """The HTML document."""
    return environment().get_template(page.template).render(_values(page, frame))


def main_part(page: ConsolePage, frame: Frame) -> str:
    """The `<main>` element alone, for a browser that has the rest."""
    context = environment().get_template(page.template).new_context(_values(page, frame))
    return "".join(environment().get_template("page.html").blocks["main"](context))


def _values(page: ConsolePage, frame: Frame) -> dict[str, Any]:
    return {"page": page, "frame": frame, "navigation": NAVIGATION, "version": VERSION, **page.values}


@cache
def environment() -> Environment:
    """The templates, with the filters that pages use."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters |= {
        "when": moment_markup,
        "span": span,
        "money": shown_money,
        "number": number,
        "encoded": encoded,
        "cost": row_cost,
        "queued": lambda queued: queued_text(queued, datetime.now(UTC), QUEUED_LONG),
        "state_of": state_of,
        "size": size_text,
        "visible": visible,
    }
    # Not imported by the templates: `main_part` renders a block without the statements around it.
    found.globals["parts"] = found.get_template("parts.html").module
    return found


def moment_markup(moment: datetime | None) -> Markup:
    """A time that the browser shows as an age, such as `5m ago`, and without JavaScript as it is."""
    if moment is None:
        return Markup("")
    utc = moment.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(timespec="seconds"), f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    )
