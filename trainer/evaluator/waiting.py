"""How long an evaluator waits for checkpoints: as long as somebody may still write one."""

import time

from trainer.cluster import Cluster, Role
from trainer.liveness import EVERY_S, Attendance, PeerLost, answers_of


class ChiefWatch:
    """Asks the chief whether it is there, where it can be asked.

    A chief that trains with others listens at its address. One that trains alone does not, nor does
    one of a cluster without its address: there an evaluator waits until it is ended.
    """

    def __init__(self, cluster: Cluster, *, peers_within_s: float) -> None:
        listens = cluster.is_multi_worker or Role.PARAMETER_SERVER in cluster.members
        self._chief = Attendance(addresses=cluster.members.get(Role.CHIEF, ()) if listens else ())
        self._peers_within_s = peers_within_s
        self._started = self._asked_at = time.monotonic()

    def check(self) -> None:
        """Ask, at most once in EVERY_S seconds.

        Raises:
            PeerLost: the chief has been gone for too long, or did not come.
        """
        now = time.monotonic()
        if now - self._asked_at < EVERY_S:
            return
        self._asked_at = now
        self._chief.note(answers_of(self._chief.addresses), now)
        if gone := self._chief.gone(now):
            raise PeerLost(f"The chief at {', '.join(gone)} is gone.")
        if (missing := self._chief.missing) and now - self._started >= self._peers_within_s:
            raise PeerLost(
                f"After {self._peers_within_s:g} s the chief at {', '.join(missing)} had not come."
            )
