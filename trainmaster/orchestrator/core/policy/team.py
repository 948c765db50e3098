"""What the policy file says about one team; teams.py narrows the policy to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.orchestrator.core.documents.faults import listed


@dataclass(frozen=True, kw_only=True)
class Team:
    """What the policy says about one team.

    Attributes:
        members: who may drop its files and read its models; for Terraform only.
        requests_topic: the id of the topic whose messages are the team's; None: it has none.
        images: patterns of the images it may use; None: all that the policy allows.
        shared_prefixes: `gs://` URIs outside its folders, below which its packages, scripts and watched data may be.
    """

    members: tuple[str, ...] = ()
    requests_topic: str | None = None
    images: tuple[str, ...] | None = None
    shared_prefixes: tuple[str, ...] = ()


def teams_problem(teams: Mapping[str, Team], *, needs_teams: bool, project: str) -> str | None:
    """Why the policy's teams are ambiguous or cannot be used; None if they can.

    `needs_teams`: a limit is per team. `project` is the deployment's; empty if it is not known.
    """
    topics = [each.requests_topic for each in teams.values() if each.requests_topic is not None]
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        return f"teams: {listed(twice)} is the requests_topic of more than one team"
    if not teams and needs_teams:
        return "admission.limits: `per: team` needs `teams`"
    if teams and not project:
        return "teams: the accounts of their jobs are in the deployment's project, which is not known here"
    return None
