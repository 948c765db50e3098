"""Who may change something in the console of a team: people, and the teams for which they act."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

EVERY_TEAM = "*"


@dataclass(frozen=True, kw_only=True)
class ConsolePolicy:
    """`people`: teams by principal, `user:EMAIL` or `domain:DOMAIN` as IAM names them; EVERY_TEAM stands for everything."""

    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def teams_of(self, email: str, domain: str) -> frozenset[str]:
        """The teams for which a person may act, by the address and the Workspace domain, which may be empty; no case counts."""
        principals = {f"user:{email}".lower(), f"domain:{domain}".lower()}
        rows = (teams for principal, teams in self.people.items() if principal.lower() in principals)
        return frozenset(team for teams in rows for team in teams)


def may_act(teams: Collection[str], team: str | None) -> bool:
    """Whether these teams include that of a run, rule or model; None: it belongs to no team."""
    return EVERY_TEAM in teams or team in teams
