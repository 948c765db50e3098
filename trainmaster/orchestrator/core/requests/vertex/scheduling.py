"""How a job is run, as the API spells it, said in our own way."""

from typing import Any

from trainmaster.orchestrator.core.documents.faults import json_path, shown
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Numbers, Path, Translation, by_number

STRATEGY_NUMBERS: Numbers = {
    0: "STRATEGY_UNSPECIFIED",
    1: "ON_DEMAND",
    2: "LOW_COST",
    3: "STANDARD",
    4: "SPOT",
    6: "FLEX_START",
}
"""Source: google/cloud/aiplatform_v1/types/custom_job.py, read 2026-11; a test holds it to the client's."""
DEPRECATED = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
_OURS = {"STANDARD": "", "SPOT": "spot", "FLEX_START": "flex_start"}
_DURATIONS = {"timeout": "timeout_s", "maxWaitDuration": "max_wait_s"}
_FLAGS = {"restartJobOnWorkerRestart": "restart_on_worker_restart", "disableRetries": "disable_retries"}
_HERE: Path = ("scheduling",)


class SchedulingTranslation(Translation):
    """The scheduling of a job."""

    def _scheduling(self, mine: dict[str, Any], spec: Fields) -> None:
        written = self._fields(spec, "scheduling")
        scheduling: dict[str, Any] = {}
        self._put(mine, (), "scheduling", scheduling if spec.has("scheduling") else None, written.path)
        for theirs, ours in _DURATIONS.items():
            self._put(scheduling, _HERE, ours, self._duration(written, theirs), written.at(theirs))
        for theirs, ours in _FLAGS.items():
            self._put(scheduling, _HERE, ours, written.get(theirs), written.at(theirs))
        self._strategy(scheduling, written)
        self._without_effect(scheduling, written)
        self._faults += written.unknown()

    def _without_effect(self, scheduling: dict[str, Any], written: Fields) -> None:
        """What the service itself does not look at would be a contradiction in our own way."""
        if "max_wait_s" in scheduling and "flex_start" not in scheduling:
            del scheduling["max_wait_s"]
            problem = "Vertex AI waits with the strategy FLEX_START alone: this is passed over"
            found = shown(written.get("maxWaitDuration"))
            self._warn(written.at("maxWaitDuration"), problem, found=found, repair="leave it out")
        restart, retries = _FLAGS.values()
        if scheduling.get(restart) is True and scheduling.get(retries) is True:
            del scheduling[restart]
            path = written.at("restartJobOnWorkerRestart")
            problem = "without retries nothing is started again: this is passed over"
            self._warn(path, problem, found=shown(True), repair="leave out one of the two")

    def _strategy(self, scheduling: dict[str, Any], written: Fields) -> None:
        path = written.at("strategy")
        for ours in filter(None, _OURS.values()):
            self._places[json_path((*_HERE, ours))] = json_path(path)
        found = by_number(written.get("strategy"), STRATEGY_NUMBERS)
        today = DEPRECATED.get(found) if isinstance(found, str) else None
        if today is not None:
            problem = f"Vertex AI has deprecated this strategy; the job is submitted as {today}"
            self._warn(path, problem, found=shown(written.get("strategy")), repair=f"write {today}")
        words = _OURS | {old: _OURS[new] for old, new in DEPRECATED.items()}
        word = self._word(written, "strategy", words, STRATEGY_NUMBERS)
        if word:
            scheduling[word] = True
