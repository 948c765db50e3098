"""Follows a dropped tuning request: its record, its job with every trial, and what the trials log."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.cli.demo.progress import TrainingProgress
from trainmaster.cli.demo.stage import Dropped
from trainmaster.cli.demo.trail import Trail, with_job
from trainmaster.cli.demo.way import Hop, Sighting, whole_way
from trainmaster.cli.study.board import Board
from trainmaster.cli.study.read import study_of
from trainmaster.cli.study.study import counts
from trainmaster.client.clients import Target
from trainmaster.orchestrator.core.completion.entry import TRIAL_LABEL

LAST_TRIAL_ENDS = "Last trial ends"


@dataclass(frozen=True, kw_only=True)
class TuningSighting(Sighting):
    """One tuning at one moment; there is no board before there is a job."""

    board: Board | None = None
    parallel_trials: int = 1


class TuningWatch:
    """Every call of `look` reads what is new since the last."""

    def __init__(self, target: Target, dropped: Dropped) -> None:
        self._trail = Trail(target, dropped)
        self._training: dict[str, TrainingProgress] = {}

    def look(self) -> TuningSighting:
        """Where the request stands now."""
        seen = self._trail.look()
        for entry in self._trail.entries:
            trial_id = (entry.labels or {}).get(TRIAL_LABEL)
            if trial_id and isinstance(entry.payload, dict):
                known = self._training.get(trial_id, TrainingProgress())
                self._training[trial_id] = known.after(entry.payload)
        if not seen.job_name:
            return TuningSighting(**vars(seen))
        job = self._trail.jobs.get_hyperparameter_tuning_job(name=seen.job_name)
        return TuningSighting(
            **with_job(seen, job),
            parallel_trials=job.parallel_trial_count,
            board=Board(study=study_of(job), at=datetime.now(UTC), progress=epochs(self._training)),
        )


def epochs(training: Mapping[str, TrainingProgress]) -> dict[str, str]:
    """By trial id, the epoch that its furthest replica is in, for those that said one."""
    furthest = {
        trial_id: max(progress.replicas.values(), key=lambda replica: replica.steps_done)
        for trial_id, progress in training.items()
        if progress.replicas
    }
    return {
        trial_id: f"epoch {max(replica.epoch, 1)}/{replica.epochs}"
        for trial_id, replica in furthest.items()
        if replica.epochs
    }


def hops(seen: TuningSighting) -> list[Hop]:
    """The stations of a tuning, in order."""
    study = seen.board.study if seen.board else None
    trials = study.trials if study else ()
    starts = [trial.start_time for trial in trials if trial.start_time]
    ends = [trial.end_time for trial in trials if trial.end_time]
    planned = study.max_trials if study else 0
    over = bool(trials) and len(ends) == len(trials) and (len(ends) == planned or bool(seen.job_ended_at))
    return whole_way(
        seen,
        resource="HyperparameterTuningJob",
        at_work=[
            Hop(
                title="First trial starts",
                at=min(starts, default=None),
                detail=f"{planned} trials, {seen.parallel_trials} at a time",
            ),
            Hop(title=LAST_TRIAL_ENDS, at=max(ends) if over else None, detail=counts(trials)),
        ],
    )
