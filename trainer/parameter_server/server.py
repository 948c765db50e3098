"""Workers and parameter servers: they serve the chief until they are stopped or it is gone for good."""

from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf
from tensorflow.python.eager import context

from trainer.devices.strategy import claim_gpus, limit_threads, resolver
from trainer.events import report
from trainer.export.manifest import MANIFEST_NAME
from trainer.replicas.cluster import Role
from trainer.replicas.ending import end_with
from trainer.replicas.liveness import Answer, Attendance, await_peers, watch
from trainer.workload import Run


def serve(run: Run) -> None:
    """Serve the chief that coordinates the training, as a worker or parameter server, and exit.

    The exit status is 0 after the chief's export, else PEER_LOST. A restarted chief reconnects to running servers, and
    a running chief to a restarted worker. TensorFlow's servers cannot be stopped: this does not return.
    """
    cluster, model = run.cluster, run.outputs.model.path
    if cluster.trains:  # its steps read the data, at the path that the chief names
        run.with_data()
    limit_threads(cluster)
    claim_gpus(cluster)
    exported_before = _stamp(model)
    server = tf.distribute.Server(
        resolver(cluster).cluster_spec(),
        job_name=str(cluster.role),
        task_index=cluster.index,
        config=context.context().config,  # without it, the server would use all GPUs and all of their memory
    )
    report("serving", f"{cluster.replica} serves at {server.target}", replica=cluster.replica)
    chief = cluster.replicas_of(Role.CHIEF)
    await_peers(cluster, chief, within_s=run.settings.peers_within_s)

    def lost(peers: Attendance, now: float) -> Sequence[str]:
        if Answer.ABSENT in peers.last.values() and _stamp(model) not in {None, exported_before}:
            report(
                "serving_finished",
                f"{cluster.replica} finished: the model is exported",
                replica=cluster.replica,
            )
            end_with(0)
        return peers.gone(now)

    watch(cluster, chief, lost)
    server.join()


def _stamp(model: Path) -> int | None:
    """When an export in this directory was finished, in nanoseconds; None without one."""
    try:
        return (model / MANIFEST_NAME).stat().st_mtime_ns
    except FileNotFoundError:
        return None
