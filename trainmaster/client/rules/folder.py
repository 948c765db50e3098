"""Makes the rules of a deployment, or of a team, those of a folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.client.errors import ClientRefused
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.rules.listing import list_rules
from trainmaster.client.submission.examination import Examination
from trainmaster.orchestrator.core.names import RULES_PREFIX, in_team, is_rule_object
from trainmaster.orchestrator.core.retraining.state import RuleStanding

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


@dataclass(frozen=True, kw_only=True)
class RuleChanges:
    """The rules to apply, each with whether its file is new, and the deployment's rules to remove."""

    wanted: tuple[tuple[Examination, bool], ...]
    removed: tuple[FoundRule, ...]

    @property
    def lines(self) -> Iterator[str]:
        """One for each change, in the order in which they are made."""
        for rule, is_new in self.wanted:
            pause = "" if is_new else "; a pause ends unless the file has `enabled: false`"
            yield f"{'add' if is_new else 'change'} {rule.object_name}, from {rule.title}{pause}"
        for found in self.removed:
            yield f"remove {found.dropped_name}"


def rule_files_in(folder: str, *, may_be_empty: bool) -> list[str]:
    """The paths of the rules in the folder, sorted; no hidden or temporary file, and none of another kind.

    Raises:
        ClientRefused: it cannot be read, or has no rule and may not be empty.
    """
    try:
        paths = sorted(each for each in Path(folder).iterdir() if is_rule_object(RULES_PREFIX + each.name))
    except OSError as error:
        raise ClientRefused(f"--prune takes a folder, and {folder} is none: {error.strerror}.") from error
    if not paths and not may_be_empty:
        raise ClientRefused(f"{folder} has no rule, so all would be removed. If you mean it: --allow-empty")
    return [str(path) for path in paths if path.is_file()]


def rule_changes(clients: "Clients", rules: Sequence[Examination], team: str | None) -> RuleChanges:
    """The changes after which the rules, or those of the team, are exactly these sound ones. Changes nothing.

    A rule in force with the same content is left alone, also in quarantine. Reads what `list_rules` reads.

    Raises:
        NotFound, google.api_core.exceptions.GoogleAPICallError: as `list_rules`.
    """
    own = f"{RULES_PREFIX}{in_team(team, '')}"
    found = {each.dropped_name: each for each in list_rules(clients) if each.has_file}
    names = {rule.object_name for rule in rules}
    return RuleChanges(
        wanted=tuple(
            (rule, rule.object_name not in found)
            for rule in rules
            if not _is_in_force(rule, found.get(rule.object_name))
        ),
        removed=tuple(each for name, each in found.items() if name.startswith(own) and name not in names),
    )


def _is_in_force(rule: Examination, found: FoundRule | None) -> bool:
    if found is None or found.status is None or found.rule is None or rule.rule is None:
        return False
    is_taken = found.status.state not in (RuleStanding.REFUSED, RuleStanding.RETRYING)
    wanted = (rule.rule.document, rule.rule.template and rule.rule.template.sha256)
    return is_taken and wanted == (found.rule.document, found.rule.template and found.rule.template.sha256)
