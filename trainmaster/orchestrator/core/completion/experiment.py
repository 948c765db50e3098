"""The ended run as a run of an experiment of Vertex AI Experiments: its parameters and metrics, as the SDK reads them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.runs.index import named_args
from trainmaster.orchestrator.core.runs.record import RunRecord, metrics_of
from trainmaster.orchestrator.core.runs.states import RunState


@dataclass(frozen=True, kw_only=True)
class ExperimentRun:
    """What is kept of a run. `state`: as the SDK names the states of executions."""

    experiment: str
    region: str
    run_id: str
    state: str
    params: Mapping[str, str | float]
    metrics: Mapping[str, float]

    @property
    def id(self) -> str:
        """The same for every attempt: EXPERIMENT-RUN, as the SDK builds it."""
        return f"{self.experiment}-{self.run_id.replace('_', '-')}"


def experiment_run(record: RunRecord, spec: JobSpec, experiment: str, region: str) -> ExperimentRun:
    """The ended run, whose job was in that region."""
    best = record.tuning.best_trial if record.tuning else None
    args = named_args(spec.cluster.chief.program.args)
    params = {name.lstrip("-"): _number_or(text) for name, text in args.items()}
    found = {name: _number_or(str(value)) for name, value in (best.parameters if best else {}).items()}
    return ExperimentRun(
        experiment=experiment,
        region=region,
        run_id=record.run_id,
        state="COMPLETE" if record.state is RunState.SUCCEEDED else "FAILED",
        params={**params, **found},
        metrics={name: value for name, value in metrics_of(record).items() if math.isfinite(value)},
    )


def _number_or(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
