"""What a replica trains or evaluates: the workload, the flags, and a data set that lies ready on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.cluster import Cluster
from trainer.dataset import Dataset, progress_is_quiet, ready_dataset
from trainer.flags import Flags
from trainer.workloads import Workload, workload_named


@dataclass(frozen=True, kw_only=True)
class Subject:
    flags: Flags
    workload: Workload
    dataset: Dataset


def ready_subject(flags: Flags, cluster: Cluster, environment: Mapping[str, str]) -> Subject:
    """The subject of a run with these flags; the chief prepares a data set that is not there yet.

    Raises:
        Unusable: the data set cannot be had or does not fit.
    """
    progress_is_quiet()
    dataset = ready_dataset(
        flags.dataset,
        data_dir=flags.data_dir,
        train_split=flags.train_split,
        evaluation_split=flags.evaluation_split,
        download=flags.download,
        prepares=cluster.is_chief,
        environment=environment,
    )
    return Subject(flags=flags, workload=workload_named(flags.workload), dataset=dataset)
