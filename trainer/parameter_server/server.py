"""Workers and parameter servers: they serve the chief until they are stopped or it is gone for good."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.command_line.flags import Flags
from trainer.data.dataset import ready_subject
from trainer.devices.gpus import OwnGpus, own_gpus
from trainer.devices.strategy import processors_for, resolver
from trainer.events import report
from trainer.export.manifest import MANIFEST_NAME
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.liveness import EVERY_S, Attendance, answers_of, carry_out, ending
from trainer.storage import Outputs


def serve(flags: Flags, cluster: Cluster, outputs: Outputs, environment: Mapping[str, str]) -> None:
    """Serve the chief that coordinates the training, as a worker or parameter server, and exit.

    The exit status is 0 after the chief's export, else PEER_LOST. A restarted chief reconnects to running servers, and
    a running chief to a restarted worker. TensorFlow's servers cannot be stopped: this does not return.
    """
    if cluster.trains:  # its steps read the data, at the path that the chief names
        ready_subject(flags, cluster, environment)
    found, processors, model = resolver(cluster), processors_for(cluster), outputs.model.path
    exported_before, gpus = _stamp(model), len(tf.config.list_physical_devices("GPU"))
    server = tf.distribute.Server(
        found.cluster_spec(),
        job_name=str(cluster.role),
        task_index=cluster.index,
        config=configuration(processors, own_gpus(cluster, gpus, has_coordinator=True)),
    )
    report("serving", f"{cluster.replica} serves at {server.target}", replica=cluster.replica)
    chief = Attendance(addresses=cluster.members[Role.CHIEF])
    started = time.monotonic()
    end = None
    while end is None:
        answers, now = answers_of(chief.addresses), time.monotonic()
        chief.note(answers, now)
        end = ending(
            chief,
            now,
            has_export=(stamp := _stamp(model)) is not None and stamp != exported_before,
            waited_s=now - started,
            peers_within_s=flags.peers_within_s,
        )
        time.sleep(EVERY_S)
    carry_out(end, cluster.replica)


def configuration(processors: int, gpus: OwnGpus) -> Any:
    """What a server may use of its machine: so many processors, and of its GPUs these, taking memory as it needs it."""
    return tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=processors,
        inter_op_parallelism_threads=max(2, processors),
        device_count={} if gpus.indices else {"GPU": 0},
        gpu_options=tf.compat.v1.GPUOptions(
            allow_growth=True, visible_device_list=",".join(map(str, gpus.indices))
        ),
    )


def _stamp(model: Path) -> int | None:
    """When an export in this directory was finished, in nanoseconds; None without one."""
    try:
        return (model / MANIFEST_NAME).stat().st_mtime_ns
    except FileNotFoundError:
        return None
