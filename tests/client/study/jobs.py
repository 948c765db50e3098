"""Tuning jobs as JobService answers over REST, served on a real port: what a finished search looks like on the wire."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.client.served import Served, run_record, served_context
from trainstack.http import in_thread, serving

JOB = "projects/trainmaster-local/locations/us-central1/hyperparameterTuningJobs/12"
RUN = "horses-20260301t120000-0000000001"
HOSTILE = "</script><img src=x onerror=alert(1)>=cmd"
RATE = {
    "parameterId": "rate",
    "doubleValueSpec": {"minValue": 1e-4, "maxValue": 0.1},
    "scaleType": "UNIT_LOG_SCALE",
}
LAYERS = {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 8}}
WORD = {"parameterId": HOSTILE, "categoricalValueSpec": {"values": [HOSTILE, "sgd"]}}


@dataclass
class Jobs:
    """A context with one run, `RUN`, whose job is `document`; it may be changed between requests."""

    served: Served
    document: dict[str, Any] = field(default_factory=dict)  # Any: JSON


def tuning_job(
    *trials: dict[str, Any], parameters: tuple[dict[str, Any], ...] = (RATE, LAYERS, WORD), **more: Any
) -> dict[str, Any]:
    """The job as `GET` returns it."""
    return {
        "name": JOB,
        "displayName": "horses",
        "state": "JOB_STATE_RUNNING",
        "maxTrialCount": 20,
        "parallelTrialCount": 2,
        "studySpec": {
            "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
            "parameters": list(parameters),
        },
        "trialJobSpec": {"baseOutputDirectory": {"outputUriPrefix": f"gs://models/horses/{RUN}"}},
        "trials": list(trials),
        **more,
    }


def trial(
    number: int, result: float | None = None, *, state: str = "SUCCEEDED", **more: Any
) -> dict[str, Any]:
    """A trial that rose from 0 at step 0 to `result` at step 2."""
    curve = [] if result is None else [(0, 0.0), (1, result / 2), (2, result)]
    found = {
        "id": str(number),
        "state": state,
        "parameters": [
            {"parameterId": "rate", "value": 10 ** -(1 + number % 4)},
            {"parameterId": "layers", "value": number},
            {"parameterId": HOSTILE, "value": HOSTILE if number % 2 else "sgd"},
        ],
        "measurements": [_measurement(step, value) for step, value in curve],
        "startTime": f"2026-03-01T12:{number % 60:02}:00Z",
        "endTime": f"2026-03-01T13:{number % 60:02}:00Z",
    }
    final = {} if result is None else {"finalMeasurement": _measurement(2, result)}
    return found | final | more


def _measurement(step: int, value: float) -> dict[str, Any]:
    return {"stepCount": str(step), "metrics": [{"metricId": "accuracy", "value": value}]}


@contextmanager
def served_jobs(folder: Path) -> Iterator[Jobs]:
    """The context, with a JobService that only answers `GET` of a tuning job."""
    found: list[Jobs] = []

    async def answer(request: Request) -> Response:
        document = found[0].document
        if request.url.path != f"/v1/{document.get('name')}":
            return JSONResponse(
                {"error": {"code": 404, "message": "no such job", "status": "NOT_FOUND"}}, 404
            )
        return JSONResponse(document)

    app = Starlette(routes=[Route("/{path:path}", answer, methods=["GET"])])
    with in_thread(lambda: serving(app)) as url, served_context(folder, VERTEX_EMULATOR_HOST=url) as served:
        record = run_record("tuned", run_id=RUN, state="running")
        record["job"] = {**record["job"], "name": JOB, "state": "JOB_STATE_RUNNING"}
        record["request"]["document"]["tuning"] = {
            "parameters": {"rate": {"type": "double"}, "layers": {"type": "integer"}}
        }
        del record["tuning"]
        served.write("ledger", f"runs/{RUN}.json", record)
        served.write("ledger", "runs/plain.json", run_record(run_id="plain"))
        found.append(Jobs(served=served, document=tuning_job()))
        yield found[0]
