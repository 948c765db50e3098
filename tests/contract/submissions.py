"""Submissions of a small job, and of a tuning, for the suites of the job service."""

import itertools

from tests.contract.conftest import PROGRAM
from tests.contract.world import MODELS, PROJECT, REGION
from trainmaster.orchestrator.core.requests.spec import (
    Cluster,
    Container,
    Goal,
    JobSpec,
    Metric,
    Scheduling,
    Tuning,
    WorkerPool,
)
from trainmaster.orchestrator.core.requests.submission import Submission, Target, submission_of

_numbers = itertools.count(1)
CREATE = "POST /v1/projects/my-project/locations/us-central1/customJobs"
TUNING = Tuning(
    metrics=(Metric(id="accuracy", goal=Goal.MAXIMIZE),),
    max_trials=2,
    document={
        "metrics": [{"id": "accuracy", "goal": "maximize"}],
        "parameters": {"x": {"type": "double", "min": 0.0, "max": 1.0}},
    },
)


def submission(
    run_id: str = "", tuning: Tuning | None = None, args: tuple[str, ...] = ("tell",)
) -> Submission:
    spec = JobSpec(
        model_name="model",
        cluster=Cluster(
            chief=WorkerPool(
                replicas=1,
                machine="n1-standard-4",
                program=Container(image=PROGRAM + ":latest", args=args, env={"A": "1"}),
            )
        ),
        tuning=tuning,
        scheduling=Scheduling(timeout_s=600, restart_on_worker_restart=True),
        labels={"team": "vision"},
    )
    target = Target(project=PROJECT, region=REGION, models_bucket=MODELS)
    return submission_of(run_id or f"run-{next(_numbers)}", spec, target)
