"""How long an evaluator waits for checkpoints: as long as somebody may still write one."""

import time

from trainer.cluster import Cluster, Role
from trainer.events import report
from trainer.liveness import EVERY_S, Attendance, answers_of
from trainer.peers import PEER_LOST, end_with


class ChiefWatch:
    """Asks the chief whether it is there, where it can be asked.

    A chief that trains with others listens at its address. One that trains alone does not, nor does
    one of a cluster without its address: there an evaluator waits until it is ended.
    """

    def __init__(self, cluster: Cluster, *, peers_within_s: float) -> None:
        listens = cluster.is_multi_worker or Role.PARAMETER_SERVER in cluster.members
        self._chief = Attendance(addresses=cluster.members.get(Role.CHIEF, ()) if listens else ())
        self._replica = cluster.replica
        self._peers_within_s = peers_within_s
        self._started = self._asked_at = time.monotonic()

    def check(self) -> None:
        """Ask, at most once in EVERY_S seconds; a chief that is gone for too long or did not come ends this process."""
        now = time.monotonic()
        if now - self._asked_at < EVERY_S:
            return
        self._asked_at = now
        self._chief.note(answers_of(self._chief.addresses), now)
        if self._chief.gone(now):
            self._end("peer_lost", "its chief is gone")
        if self._chief.missing and now - self._started >= self._peers_within_s:
            self._end(
                "peers_missing", f"its chief had not come after {self._peers_within_s:g} s (--peers_within_s)"
            )

    def _end(self, event: str, why: str) -> None:
        report(event, f"{self._replica} ends: {why}", severity="ERROR", replica=self._replica, peer="chief-0")
        end_with(PEER_LOST)
