"""A CustomJobSpec as the API spells it, said in our own way: what a custom job and every trial of a tuning run.

Source: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec
"""

from typing import Any

from trainmaster.orchestrator.core.requests.vertex.fields import Fields
from trainmaster.orchestrator.core.requests.vertex.pools import PoolTranslation
from trainmaster.orchestrator.core.requests.vertex.scheduling import SchedulingTranslation

KEYS = {
    "serviceAccount": "service_account",
    "network": "network",
    "tensorboard": "tensorboard",
    "enableWebAccess": "web_access",
    "enableDashboardAccess": "dashboard_access",
    "persistentResourceId": "persistent_resource",
    "reservedIpRanges": "reserved_ip_ranges",
    "experiment": "experiment",
    "experimentRun": "experiment_run",
}
WITHOUT_PLACE = ("models", "protectedArtifactLocationId", "pscInterfaceConfig")


class JobSpecTranslation(PoolTranslation, SchedulingTranslation):
    """The part that both kinds of job have."""

    def _job_spec(self, mine: dict[str, Any], spec: Fields, *, ending: str = "") -> None:
        """`ending` is what the service itself put at the end of the output directory."""
        for theirs, ours in KEYS.items():
            self._put(mine, (), ours, spec.get(theirs), spec.at(theirs))
        self._output(mine, spec, ending)
        self._scheduling(mine, spec)
        self._pools(mine, spec)
        self._faults += spec.unknown(WITHOUT_PLACE)

    def _output(self, mine: dict[str, Any], spec: Fields, ending: str) -> None:
        written = self._fields(spec, "baseOutputDirectory")
        output: dict[str, Any] = {}
        self._put(mine, (), "output", output if spec.has("baseOutputDirectory") else None, written.path)
        prefix = written.get("outputUriPrefix")
        if isinstance(prefix, str) and ending:
            prefix = prefix.rstrip("/").removesuffix(ending)
        self._put(output, ("output",), "prefix_uri", prefix, written.at("outputUriPrefix"))
        self._faults += written.unknown()
