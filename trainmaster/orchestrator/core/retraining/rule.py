"""A valid rule. `reading.parse_rule` reads it from a dropped file; the book keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded_time
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.notices.notice import RULE_QUARANTINED, Notice, notice_of
from trainmaster.orchestrator.core.retraining.condition import All, Condition, condition_from, members_of
from trainmaster.orchestrator.core.retraining.filling import Placeholder
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.times.windows import Window, free_from, windows_from


def state_object(rule_id: str) -> str:
    return f"rule-state/{rule_id}.json"


def chunk_object(rule_id: str, digest: str) -> str:
    """Where objects that wait for a firing are kept by name."""
    return f"rule-data/{rule_id}/{digest}.ndjson"


def manifest_object(run_id: str, digest: str, team: str | None) -> str:
    """Where the objects of a firing are listed for its run: `manifests/…`, with teams `manifests/<team>/…`."""
    return f"manifests/{in_team(team, run_id)}-{digest}.ndjson"


def template_object(sha256: str) -> str:
    """Where the content of an accepted template is kept."""
    return f"templates/{sha256}"


class WhileRunning(StrEnum):
    """What happens to a firing while the rule's last run is active."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    REPLACE = "replace"


@dataclass(frozen=True, kw_only=True)
class RunOutputs:
    """What a request's runs make, whichever condition fires the rule.

    `output_prefix_uri` None: the models bucket. `model_uri` None: the model is under the output prefix. `promotes`:
    the runs may become champions.
    """

    model_name: str
    output_prefix_uri: str | None = None
    model_uri: str | None = None
    promotes: bool = False


@dataclass(frozen=True, kw_only=True)
class Template:
    """The object that `request_uri` named when the rule was accepted. The ledger keeps its content under its hash."""

    generation: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Quarantine:
    """Why and since when the service does not process a rule, until its file is dropped again."""

    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What to watch, and the request to run when it happens; an entry of the book.

    Attributes:
        generation: the dropped file's.
        team: in whose folder the file is; None without teams.
        makes: what the request's runs make.
        writes_uri: the `gs://…/` under which they write.
        placeholders: those of the request when the rule was accepted.
        document: the file's content, which the schema accepts.
    """

    rule_id: str
    dropped_name: str
    generation: int
    makes: RunOutputs
    writes_uri: str
    placeholders: tuple[Placeholder, ...]
    document: Mapping[str, Any]
    team: str | None = None
    template: Template | None = None
    quarantine: Quarantine | None = None

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(map(condition_from, self.document["when"]))

    @cached_property
    def members(self) -> tuple[Condition, ...]:
        """The conditions, those inside `all` included, but no `all`."""
        return tuple(member for condition in self.conditions for member in members_of(condition))

    @property
    def groups(self) -> tuple[All, ...]:
        return tuple(condition for condition in self.conditions if isinstance(condition, All))

    @cached_property
    def new_data(self) -> tuple[NewData, ...]:
        return tuple(condition for condition in self.members if isinstance(condition, NewData))

    @property
    def keeps_objects(self) -> bool:
        """Whether a firing needs the names of all objects that it takes."""
        named = any(placeholder.name == "data.manifest_uri" for placeholder in self.placeholders)
        return bool(self.new_data) and (named or any(condition.each for condition in self.new_data))

    @property
    def request(self) -> Mapping[str, Any] | None:
        """The inline request with its placeholders; None if `request_uri` names it."""
        return self.document.get("request")

    @property
    def request_uri(self) -> str | None:
        """The `gs://` object of the inbox that holds the request; `template` is what it was when it was accepted."""
        return self.document.get("request_uri")

    @property
    def while_running(self) -> WhileRunning:
        return WhileRunning(self.document.get("while_running", WhileRunning.SKIP))

    @property
    def cooldown(self) -> timedelta:
        return timedelta(seconds=self.document.get("cooldown_s", 0))

    @property
    def max_per_day(self) -> int:
        """Firings in any 24 hours."""
        return int(self.document.get("max_per_day", 24))

    @cached_property
    def not_before(self) -> datetime | None:
        text = self.document.get("not_before")
        return decoded_time(text) if text is not None else None

    @cached_property
    def blackout(self) -> tuple[Window, ...]:
        return windows_from(self.document.get("blackout", ()))

    def free_from(self, moment: datetime) -> datetime:
        """The first time, not before the moment, at which neither `not_before` nor `blackout` keeps it from firing."""
        return free_from(self.blackout, max(moment, self.not_before or moment))

    @property
    def enabled(self) -> bool:
        """Whether it may fire."""
        return self.quarantine is None and bool(self.document.get("enabled", True))

    @property
    def model_name(self) -> str:
        return self.makes.model_name

    @property
    def all_writes_uris(self) -> tuple[str, ...]:
        """The prefixes of all objects that its runs write."""
        model_uri = (self.makes.model_uri or "").partition("${")[0]
        return (self.writes_uri, model_uri) if model_uri else (self.writes_uri,)


@dataclass(frozen=True, kw_only=True)
class ChampionFacts:
    """What rules need to know about their model's champion. `since`: when it was promoted."""

    run_id: str
    model_uri: str
    value: float
    since: datetime


def rule_quarantined(rule: Rule, firings: int, quarantine: Quarantine) -> Notice:
    """The notice that the rule was put into quarantine after so many firings."""
    about = {
        "rule_id": rule.rule_id,
        "generation": rule.generation,
        "model_name": rule.model_name,
        "firings": firings,
        "reason": quarantine.reason,
        "team": rule.team,
    }
    notice_id = f"rules/{rule.rule_id}/{rule.generation}/quarantined"
    return notice_of(notice_id, RULE_QUARANTINED, rule.rule_id, quarantine.at, about)
