"""Many runs that train in two regions, for the cost of watching them."""

import json
from datetime import timedelta

from tests.contract.boundaries import CountedJobs
from tests.contract.retraining import SMALL
from tests.contract.test_tuning import REQUEST as TUNING
from tests.contract.world import ELSEWHERE, REGION, World, request_rules_with
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.runs.job import JobState

REGIONS = (REGION, ELSEWHERE)
MINUTE = timedelta(minutes=1)


def watched(
    custom: int, tunings: int = 0, jobs_type: type[CountedJobs] = CountedJobs
) -> tuple[World, CountedJobs]:
    """As many runs on record as running, in two regions in turn."""
    world = World(request_rules_with(admission=Admission()))
    world.jobs = jobs = jobs_type(world)
    tuning = instance_of(dict, parse_document(TUNING, as_json=False).value)
    for number in range(custom + tunings):
        request = {**(SMALL if number < custom else tuning), "region": REGIONS[number % 2]}
        world.drop_and_launch(json.dumps(request).encode(), f"requests/{number}.json")
    for job in jobs.all():
        jobs.become(job.name, JobState.RUNNING)
    world.reconcile()
    jobs.calls.clear()
    return world, jobs
