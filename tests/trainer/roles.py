"""Clusters of every role on one machine, configured as Vertex AI configures its replicas."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.trainer.conftest import Replica, Runner
from trainstack.process.ports import free_ports

POOLS = {"chief": "workerpool0", "worker": "workerpool1", "ps": "workerpool2", "evaluator": "workerpool3"}
TINY = (
    "--workload=horses_or_humans", "--image_size=32", "--batch_size=4", "--num_units=16", "--seed=3",
    "--steps_per_epoch=3", "--learning_rate=0.001",
)  # fmt: skip


@dataclass(kw_only=True)
class Roles:
    """Starts replicas of one cluster, whose addresses are chosen once."""

    runner: Runner
    counts: Mapping[str, int]
    arguments: tuple[str, ...]
    speaks: str = "TF_CONFIG"
    addresses: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        ports = iter(free_ports(sum(self.counts.values())))
        self.addresses = {
            role: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for role, count in self.counts.items()
        }

    def variables(self, role: str, index: int) -> dict[str, str]:
        """The one variable that says who this is; TF_CONFIG never lists evaluators."""
        if self.speaks == "TF_CONFIG":
            cluster = {name: found for name, found in self.addresses.items() if name != "evaluator"}
            task: dict[str, object] = {"type": role, "index": index}
        else:
            cluster = {POOLS[name]: found for name, found in self.addresses.items()}
            task = {"type": POOLS[role], "index": index, "trial": ""}
        return {self.speaks: json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}

    def start(self, role: str, *arguments: str, index: int = 0) -> Replica:
        """A replica; of a flag that is given twice the last one counts."""
        variables = self.variables(role, index)
        return self.runner.start_replica(*TINY, *self.arguments, *arguments, environment=variables)

    def start_all(self) -> dict[str, Replica]:
        """Every replica by its name, `worker-1`."""
        return {
            f"{role}-{index}": self.start(role, index=index)
            for role, count in self.counts.items()
            for index in range(count)
        }


def statuses(replicas: Mapping[str, Replica]) -> dict[str, int]:
    return {name: replica.wait() for name, replica in replicas.items()}
