"""A watched run between two of its jobs, on real storage and logging servers."""

from pathlib import Path

from tests.client.logged import Logged, point_to
from tests.client.served import no_jobs, served_context
from trainmaster.client.clients import Clients
from trainmaster.client.context import context_of_state
from trainmaster.client.find import read_run
from trainmaster.client.watch.sighting import RunWatch
from trainmaster.orchestrator.core.documents.codec import encoded
from trainstack import logging

RUN = "cassava-20260301t120000-eb46bb303f"


def test_a_run_that_waits_for_its_next_job_shows_no_times_of_the_one_before(tmp_path: Path) -> None:
    with (
        no_jobs() as vertex_url,
        served_context(tmp_path, VERTEX_EMULATOR_HOST=vertex_url) as served,
        logging.serve(tmp_path / "logging") as url,
    ):
        point_to(served, url)
        logged = Logged(served, url)
        context = context_of_state(served.folder / ".trainmaster")
        assert context is not None
        with Clients(context) as clients:
            logged.record(RUN, job_id="1")
            run = read_run(clients, RUN)
            document = encoded(run.record)
            assert isinstance(document, dict)
            started = {**document, "job": {**document["job"], "start_time": document["updated_at"]}}
            served.write("ledger", f"runs/{RUN}.json", started)
            watch = RunWatch(clients, run)
            assert watch.look().job_started_at is None  # the run as it was found
            assert watch.look().job_started_at is not None
            logged.record(RUN, "waiting")
            seen = watch.look()
    assert (seen.job_name, seen.job_state, seen.job_started_at) == ("", None, None)
