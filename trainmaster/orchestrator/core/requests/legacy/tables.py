"""What AI Platform Training called things, and what they are on Vertex AI today.

The rows of machines and tiers are general knowledge: no reference page says them any more. A request that
uses one is accepted with a warning.

Sources: the Job message of gcloud's own client (googlecloudsdk/generated_clients/apis/ml/v1/ml_v1_messages.py,
gcloud 528), https://cloud.google.com/vertex-ai/docs/start/migrating-to-vertex-ai,
https://cloud.google.com/vertex-ai/docs/training/configure-compute and
https://cloud.google.com/vertex-ai/docs/training/pre-built-containers (read 2026-11).
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field


@dataclass(frozen=True)
class Machine:
    """A machine of Vertex AI with `count` accelerators. `note` says where it is not quite the old one.

    `retired` says what of the old machine is gone; the row is then today's nearest choice, for the user to
    write and not to be taken unasked.
    """

    machine: str
    accelerator: str = ""
    count: int = 0
    _: KW_ONLY
    tpu_topology: str | None = None
    note: str = ""
    retired: str = ""


@dataclass(frozen=True, kw_only=True)
class Tier:
    """The cluster that a scale tier stands for. `pools` has the count and machine of each role beside the chief."""

    chief: Machine
    pools: Mapping[str, tuple[int, Machine]] = field(default_factory=dict)

    @property
    def notes(self) -> str:
        machines = (self.chief, *(machine for _, machine in self.pools.values()))
        return "; ".join(dict.fromkeys(machine.note for machine in machines if machine.note))


_NO_K80 = "NVIDIA K80 GPUs are no longer offered"
_NO_TPU_V2 = "TPU v2 nodes beside a machine are no longer offered"
_NO_HIGHCPU_8 = "Vertex AI trains on no n1-highcpu-8; n1-standard-8 has as many CPUs and more memory"
_T4, _P100, _V100 = "NVIDIA_TESLA_T4", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_V100"
_STANDARD_4, _HIGHMEM_8 = Machine("n1-standard-4"), Machine("n1-highmem-8")
_HIGHCPU_8, _HIGHCPU_16 = Machine("n1-standard-8", note=_NO_HIGHCPU_8), Machine("n1-highcpu-16")
_BASIC_GPU = Machine("n1-standard-8", _T4, 1, retired=_NO_K80)
# A v2-8 node had four chips, as this host of TPU v5e has.
_BASIC_TPU = Machine("ct5lp-hightpu-4t", tpu_topology="2x2", retired=_NO_TPU_V2)

CUSTOM = "CUSTOM"
TIERS: Mapping[str, Tier] = {
    "BASIC": Tier(chief=_STANDARD_4),
    "STANDARD_1": Tier(
        chief=_HIGHCPU_8, pools={"workers": (4, _HIGHCPU_8), "parameter_servers": (3, _STANDARD_4)}
    ),
    "PREMIUM_1": Tier(
        chief=_HIGHCPU_16, pools={"workers": (19, _HIGHCPU_16), "parameter_servers": (11, _HIGHMEM_8)}
    ),
    "BASIC_GPU": Tier(chief=_BASIC_GPU),
    "BASIC_TPU": Tier(chief=_BASIC_TPU),
}
MACHINES: Mapping[str, Machine] = {
    "standard": _STANDARD_4,
    "large_model": _HIGHMEM_8,
    "complex_model_s": _HIGHCPU_8,
    "complex_model_m": _HIGHCPU_16,
    "complex_model_l": Machine("n1-highcpu-32"),
    "standard_gpu": _BASIC_GPU,
    "complex_model_m_gpu": Machine("n1-standard-16", _T4, 4, retired=_NO_K80),
    "complex_model_l_gpu": Machine("n1-standard-32", _T4, 4, retired=_NO_K80),
    "standard_p100": Machine("n1-standard-8", _P100, 1),
    "complex_model_m_p100": Machine("n1-standard-16", _P100, 4),
    "standard_v100": Machine("n1-standard-8", _V100, 1),
    "large_model_v100": Machine(
        "n1-highmem-8", _V100, 1, note="an n1-highmem-16 takes no single V100; this has half its CPUs"
    ),
    "complex_model_m_v100": Machine("n1-standard-16", _V100, 4),
    "complex_model_l_v100": Machine("n1-standard-32", _V100, 8),
    "cloud_tpu": _BASIC_TPU,
}
"""Legacy machine names. Names of Compute Engine (n1-highcpu-16, …) are the same on Vertex AI."""

NO_ACCELERATOR = "ACCELERATOR_TYPE_UNSPECIFIED"
ACCELERATORS = (
    "NVIDIA_TESLA_P4",
    "NVIDIA_TESLA_T4",
    "NVIDIA_TESLA_P100",
    "NVIDIA_TESLA_V100",
    "NVIDIA_TESLA_A100",
)
"""Those that Vertex AI has too, by the same names."""
_V5E = "TPU v5e: in a request of our own, machine: ct5lp-hightpu-4t and tpu_topology: 2x2"
RETIRED_ACCELERATORS: Mapping[str, str] = {
    "NVIDIA_TESLA_K80": "write type: NVIDIA_TESLA_T4",
    "TPU_V2": f"the nearest is {_V5E}",
    "TPU_V3": f"the nearest is {_V5E}",
    "TPU_V2_POD": f"the nearest is a slice of {_V5E}",
    "TPU_V3_POD": f"the nearest is a slice of {_V5E}",
    "TPU_V4_POD": f"the nearest is a slice of {_V5E}",
}
"""What is gone, and what to write today."""

# Vertex AI installs Python packages in its own prebuilt containers alone, so no other image can take their place:
# https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#PythonPackageSpec ("You must use an image
# from this list"). Of those with TensorFlow this is the last; checks/prebuilt.py says until when it is available.
EXECUTOR = "{host}-docker.pkg.dev/vertex-ai/training/tf-{kind}.2-17.py310:latest"
EXECUTOR_SAYS = "TensorFlow 2.17 and Keras 3 with Python 3.10"
RUNTIMES = tuple(f"2.{minor}" for minor in range(1, 12))
"""Runtime versions whose nearest prebuilt container is EXECUTOR."""
RETIRED_RUNTIMES = tuple(f"1.{minor}" for minor in range(16))
PYTHONS = ("3.7",)
RETIRED_PYTHONS = ("2.7", "3.5")

IMAGE_HOSTS: Mapping[str, str] = {
    "us": "us",
    "northamerica": "us",
    "southamerica": "us",
    "europe": "europe",
    "me": "europe",
    "africa": "europe",
    "asia": "asia",
    "australia": "asia",
}
"""The repository nearest to a region, by the region's first word; each has the same images."""

GCLOUD_FLAGS: Mapping[str, str] = {
    "packageUris": "--packages",
    "pythonModule": "--module-name",
    "runtimeVersion": "--runtime-version",
}
"""Where `gcloud ai-platform jobs submit training` took it from when the file did not say."""

OUTPUT_ONLY = (
    "createTime",
    "endTime",
    "errorMessage",
    "etag",
    "jobPosition",
    "startTime",
    "state",
    "trainingOutput",
)
"""What the service wrote into a Job."""
