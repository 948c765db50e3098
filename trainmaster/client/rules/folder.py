"""Makes the rules of a deployment, or of a team, those of a folder: what would be added, changed and removed."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.client.errors import ClientRefused
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.rules.listing import FILES_MAX, list_rule_files, list_rules
from trainmaster.client.submission.examination import Examination
from trainmaster.orchestrator.core.names import REQUEST_SUFFIXES, RULES_PREFIX, in_team, is_temporary
from trainmaster.orchestrator.core.retraining.state import RuleStanding

if TYPE_CHECKING:
    from google.cloud.storage import Blob

    from trainmaster.client.clients import Clients

_IN_FORCE = (RuleStanding.ACCEPTED, RuleStanding.DISABLED, RuleStanding.QUARANTINED)


@dataclass(frozen=True, kw_only=True)
class RuleChanges:
    """What it takes until the rules are those of the folder. `generations`: of each file as it is now, 0 for a new one."""

    added: tuple[Examination, ...]
    changed: tuple[Examination, ...]
    removed: tuple[FoundRule, ...]
    unchanged: int
    generations: Mapping[str, int]

    @property
    def lines(self) -> list[str]:
        """One for each change, in the order in which they are made."""
        paused = "; a pause ends unless the file has `enabled: false`"
        return [
            *(f"add {each.object_name}, from {each.title}" for each in self.added),
            *(f"change {each.object_name}, from {each.title}{paused}" for each in self.changed),
            *(f"remove {each.dropped_name}" for each in self.removed),
        ]


def rule_files_in(folder: Path, *, may_be_empty: bool) -> list[str]:
    """The paths of the rules in the folder, sorted; hidden and temporary files, other suffixes and folders are left out.

    Raises:
        ClientRefused: it is no folder that can be read, has no rule and `may_be_empty` does not allow that, or more than FILES_MAX files.
    """
    try:
        listed = sorted(folder.iterdir())
    except OSError as error:
        raise ClientRefused(
            f"{folder} cannot be read ({error.strerror}): --prune takes the one folder that holds all rules."
        ) from error
    files = [
        each
        for each in listed
        if each.is_file() and each.name.lower().endswith(REQUEST_SUFFIXES) and not is_temporary(each.name)
    ]
    if not files and not may_be_empty:
        raise ClientRefused(
            f"{folder} has no rule, so every rule would be removed. If that is meant, add --allow-empty."
        )
    if len(files) > FILES_MAX:
        raise ClientRefused(f"{folder} has {len(files):,} files, and a deployment at most {FILES_MAX:,}.")
    return [str(each) for each in files]


def rule_changes(clients: "Clients", rules: Sequence[Examination], team: str | None) -> RuleChanges:
    """The changes after which the rules are exactly these; of a team, only its own rules. Changes nothing.

    A rule whose file is the same is left alone, also in quarantine; one that the service refused or has not answered is
    applied again.

    Raises:
        ClientRefused: the deployment has more files than are listed, so it is not known which to remove.
        NotFound, google.api_core.exceptions.GoogleAPICallError: as `list_rules`.
    """
    files, listed_to = list_rule_files(clients)
    if listed_to is not None:
        raise ClientRefused(
            f"There are {FILES_MAX:,} objects below {RULES_PREFIX}, or more: list them by hand."
        )
    own = f"{RULES_PREFIX}{in_team(team, '')}"
    found = {rule.dropped_name: rule for rule in list_rules(clients)}
    wanted = {each.object_name for each in rules}
    changed = [
        each
        for each in rules
        if each.object_name in files and not _is_same(each, files[each.object_name], found)
    ]
    added = tuple(each for each in rules if each.object_name not in files)
    return RuleChanges(
        added=added,
        changed=tuple(changed),
        removed=tuple(
            rule
            for name, rule in found.items()
            if name in files and name not in wanted and name.startswith(own)
        ),
        unchanged=len(rules) - len(added) - len(changed),
        generations={
            **{each.object_name: 0 for each in added},
            **{name: int(blob.generation) for name, blob in files.items()},
        },
    )


def _is_same(rule: Examination, blob: "Blob", found: Mapping[str, FoundRule]) -> bool:
    """Whether the file is the same, and the service has taken it."""
    digest = hashlib.md5(rule.content, usedforsecurity=False).digest()
    known = found.get(rule.object_name)
    return (
        blob.md5_hash == base64.b64encode(digest).decode()
        and known is not None
        and known.status is not None
        and known.status.state in _IN_FORCE
        and known.status.generation == int(blob.generation)
    )
