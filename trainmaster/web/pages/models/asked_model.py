"""Finds the champion of a page, and its address."""

from urllib.parse import quote

from trainmaster.client.rules.champions import FoundChampion, find_champion
from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.names import in_team
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask


def name_of(champion: Champion) -> str:
    """The name of the model, with the folder of its team."""
    return in_team(champion.team, champion.model_name)


def address_of(name: str) -> str:
    """The address of the page about the model."""
    return f"/models/{quote(name)}"


def champion_of(ask: Ask) -> FoundChampion:
    """The champion that the address names.

    Raises:
        NotFound: the model has none.
    """
    name = ask.path["name"]
    return ask.source.read(("champion", name), AnswerAge.SLOW, lambda clients: find_champion(clients, name))
