"""The person behind a request of a team's console, what they may change, and changes in their name."""

import copy
from dataclasses import replace

from starlette.requests import Request

from trainmaster.client.clients import Clients
from trainmaster.client.context import Context
from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.terms import deployed_policy
from trainmaster.orchestrator.core.policy.console import may_act
from trainmaster.web.iap import Person
from trainmaster.web.source import AnswerAge, ConsoleSource


def person_of(request: Request) -> Person | None:
    """Who sent the request; None in a console without a door."""
    person: Person | None = getattr(request.state, "person", None)
    return person


class NotTheirs(ClientRefused):
    """A change that the policy does not allow this person."""


def teams_of(source: ConsoleSource, person: Person) -> frozenset[str]:
    """The teams for which the deployed policy lets the person act.

    Raises:
        NotFound, ClientRefused, google.api_core.exceptions.GoogleAPICallError: as `deployed_policy`.
    """
    policy, _, _ = source.read("policy", AnswerAge.SLOW, deployed_policy)
    return policy.console.teams_of(person.email, person.domain)


def rights_text(context: Context, person: str) -> str:
    """What the deployed policy lets the person of a stand-in change, in words. Raises: as `teams_of`."""
    with Clients(context) as clients:
        policy, _, _ = deployed_policy(clients)
    teams = ", ".join(sorted(policy.console.teams_of(person, person.rpartition("@")[2])))
    return f"{person} may read all, and change what is of: {teams or 'no team'} (console.people in policy)."


def clients_for(source: ConsoleSource, person: Person, team: str | None) -> Clients:
    """As `Ask.clients_of`: what they send names the person, and goes into the folders of this team."""
    if not may_act(teams_of(source, person), team):
        what = f"the team {team}" if team is not None else "what belongs to no team"
        raise NotTheirs(f"{person.email} may not act for {what}, by the policy's console.people.")
    clients = source.clients
    _ = clients.storage, team or clients.pubsub  # made once, and shared
    acting = copy.copy(clients)
    acting.person = person.email
    acting.context = replace(clients.context, team=team or clients.context.team)
    return acting


def senders_teams(source: ConsoleSource, person: Person | None) -> list[str]:
    """The deployment's teams for which the person may send a request, by name; none in a console without a door."""
    if person is None:
        return []
    policy, _, _ = source.read("policy", AnswerAge.SLOW, deployed_policy)
    acts = policy.console.teams_of(person.email, person.domain)
    return sorted(team for team in policy.teams if may_act(acts, team))
