"""Teams of one deployment: each has its own folder in every bucket, and the account of its jobs.

A team is known by where something arrives: the folder of a dropped file, or the topic of a message. No document names a
team, because its author could name another one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.deployment_names import team_account
from trainmaster.orchestrator.core.documents.faults import Fault, listed
from trainmaster.orchestrator.core.names import (
    REQUESTS_PREFIX,
    RULES_PREFIX,
    TEMPLATES_PREFIX,
    drop_folder,
    in_team,
    object_uri,
    split_object_uri,
)
from trainmaster.orchestrator.core.policy.policy import Policy, Team

NO_TEAM_PROBLEM = "it belongs to none of the policy's teams"
NO_TEAM = "-"
"""Stands for the team of what belongs to none of the policy's. No team has this name, so nothing shares a name with it."""


def team_of_drop(policy: Policy | None, object_name: str) -> str | None:
    """The team in whose folder of the inbox the object is; None without teams."""
    return _known_teams(policy, drop_folder(object_name))


def team_of_topic(policy: Policy | None, event_source: str) -> str | None:
    """The team whose messages come from the event's source, which Eventarc sets and no publisher can; None without teams.

    Source: `//pubsub.googleapis.com/projects/PROJECT/topics/TOPIC`, https://cloud.google.com/eventarc/docs/cloudevents
    """
    topic = event_source.rpartition("/topics/")[2]
    teams: Mapping[str, Team] = {} if policy is None else policy.teams
    names = (name for name, team in teams.items() if team.requests_topic == topic)
    return _known_teams(policy, next(names, None))


def _known_teams(policy: Policy | None, team: str | None) -> str | None:
    if policy is None or not policy.teams:
        return None
    return team if team in policy.teams else NO_TEAM


def team_fault(policy: Policy | None, team: str | None, found: str) -> Fault | None:
    """Why nothing may be done for this team, or for none; `found` is the file or topic from which it came."""
    teams: Mapping[str, Team] = {} if policy is None else policy.teams
    if team in teams or (team is None and not teams):
        return None
    if not teams:
        problem = f"it belongs to the team {team}, and the policy no longer names teams"
        repair = "drop it again outside of a team's folder"
        return Fault(path="$", problem=problem, value=found, repair=repair)
    folders = [f"{prefix}{name}/" for name in teams for prefix in (REQUESTS_PREFIX, RULES_PREFIX)]
    topics = [row.requests_topic for row in teams.values() if row.requests_topic is not None]
    return Fault(
        path="$",
        problem=NO_TEAM_PROBLEM,
        value=found,
        allowed=f"files in {listed(folders)}; messages on {listed(topics) or 'no topic'}",
        repair="drop it into your team's folder",
    )


def policy_of(policy: Policy, team: str) -> Policy:
    """What requests of this team, which the policy names, may ask for: the same in the team's folders and account."""
    said, account = policy.teams[team], team_account(team, policy.project, policy.prefix)
    shared = said.shared_prefixes
    return replace(
        policy,
        team=team,
        images=policy.images if said.images is None else said.images,
        service_accounts=(account,),
        pools=tuple(pool for pool in policy.pools if pool.teams is None or team in pool.teams),
        output_prefixes=_own(policy.output_prefixes, team),
        package_prefixes=(*_own(policy.package_prefixes, team), *shared),
        script_prefixes=(*_own(policy.script_prefixes, team), *shared),
    )


def _own(prefixes: Sequence[str], team: str) -> tuple[str, ...]:
    """`gs://bucket/scripts` -> `gs://bucket/<team>/scripts`: a team's folder is at the top of every bucket."""
    parts = [split_object_uri(prefix) for prefix in prefixes if prefix.startswith("gs://")]
    return tuple(object_uri(bucket, in_team(team, name)).rstrip("/") for bucket, name in parts)


def may_watch(policy: Policy | None, pattern: str) -> bool:
    """Whether the pattern, `gs://bucket/…` with wildcards, matches no object outside the team's own and shared folders."""
    if policy is None or policy.team is None:
        return True
    fixed = pattern.partition("*")[0]
    bucket = fixed.removeprefix("gs://").partition("/")[0]
    allowed = (f"gs://{bucket}/{policy.team}", *policy.teams[policy.team].shared_prefixes)
    return any(fixed.startswith(f"{prefix.rstrip('/')}/") for prefix in allowed)


def template_folder(team: str | None) -> str:
    """Where a team's rules may have their templates in the inbox; without teams, anywhere."""
    return "" if team is None else f"{TEMPLATES_PREFIX}{team}/"
