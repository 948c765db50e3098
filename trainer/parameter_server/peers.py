"""The replicas that a coordinating chief needs: it waits for them, and detects their loss."""

from collections.abc import Callable, Collection, Sequence

from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.liveness import LOST_AFTER_S, Answer, Attendance, await_peers, watch

_idle_s: list[Callable[[], float]] = [lambda: 0.0]


def join(cluster: Cluster, *, within_s: float) -> None:
    """Return once every parameter server and worker answers; exit with PEER_LOST after `within_s`.

    From then on this process exits with PEER_LOST once `lost` finds a loss, whatever it is waiting for.
    """
    needed, workers = cluster.replicas_of(Role.PARAMETER_SERVER, Role.WORKER), cluster.members[Role.WORKER]
    await_peers(cluster, needed, within_s=within_s)
    watch(cluster, needed, lambda peers, now: lost(peers, now, workers=workers, idle_s=_idle_s[0]()))


def judge_by(idle_s: Callable[[], float]) -> None:
    """Ask `idle_s` from now on for the seconds since a step was last finished; 0 until then."""
    _idle_s[:] = [idle_s]


def lost(peers: Attendance, now: float, *, workers: Collection[str], idle_s: float = 0.0) -> Sequence[str]:
    """The addresses of replicas whose loss ends the run.

    A worker may leave and return, or stay away while others do its steps. A silent worker is a loss:
    TensorFlow waits for the step that it has. So is one that is away while no step is finished:
    TensorFlow takes workers back only when all are available.
    """
    gone = peers.gone(now)
    needed = [each for each in gone if each not in workers or peers.last[each] is Answer.SILENT]
    is_stuck = idle_s >= LOST_AFTER_S or len(gone) == len(workers)
    return needed or (gone if is_stuck else ())
