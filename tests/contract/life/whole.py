"""A whole life from its seed to its account."""

from tests.contract.life.guarantees import account_of
from tests.contract.life.life import Life
from tests.contract.life.odds import Odds
from tests.contract.life.people import Trainers, Users
from tests.contract.life.tally import Tally


def lived(*, seed: str, events: int, odds: Odds | None = None) -> Tally:
    return account_of_whole(Life(seed=seed, odds=odds), events)


def account_of_whole(life: Life, events: int) -> Tally:
    """The account of a life in which users ask until so many events were delivered, and then all comes to rest."""
    users, trainers = Users(life, events), Trainers(life)
    life.run()
    return account_of(life, users, trainers)
