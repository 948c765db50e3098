"""What one more trial costs in a study of a thousand: `python bench/tuning_cost.py`.

Suggestions of seven parameters of which three depend on a fourth, four trials pending.
Exits with 1 when the 99th percentile of the last suggestions takes 50 ms of processor time or more.
"""

import statistics
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.tuning_search import Json, body_of, discrete, double, under
from trainstack.tuning.suggest import Algorithm, TrialSuggestions, space_of
from trainstack.tuning.tuning_job import TuningJob

TRIALS, PENDING, LIMIT_MS = 1000, 4, 50

LAYERS: Json = {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 9}}
PARAMETERS: list[Json] = [
    double("rate", 1e-5, 1, log=True),
    double("dropout", 0, 1),
    discrete("batch", [16, 32, 64, 128]),
    {
        "parameterId": "kind",
        "categoricalValueSpec": {"values": ["sgd", "tree"]},
        "conditionalParameterSpecs": [
            under("sgd", double("momentum", 0, 1)),
            under("sgd", double("decay", 1e-6, 1e-2, log=True)),
            under("tree", LAYERS),
        ],
    },
]


def suggestions_ms() -> list[float]:
    """Processor milliseconds of each suggestion of a study."""
    body = body_of(PARAMETERS, "ALGORITHM_UNSPECIFIED", trials=TRIALS, at_once=PENDING)
    job = TuningJob.parse(body, project="1", location="us-central1", job_id="1", at=datetime.now(UTC))
    search = TrialSuggestions(
        space_of(job.message.study_spec),
        algorithm=Algorithm.ALGORITHM_UNSPECIFIED,
        maximize=job.maximize,
        seed=1,
    )
    times: list[float] = []
    pending: list[tuple[str, float]] = []
    for number in range(1, TRIALS + 1):
        began = time.thread_time()
        point = search.next(str(number))
        times.append((time.thread_time() - began) * 1000)
        assert point is not None
        pending.append((str(number), (float(point["dropout"]) - 0.3) ** 2))
        if len(pending) == PENDING:
            trial_id, value = pending.pop(0)
            search.tell(trial_id, [value])
    return times


def shown(times: Sequence[float]) -> str:
    return f"median {statistics.median(times):6.1f} ms   99th percentile {sorted(times)[int(len(times) * 0.99)]:6.1f} ms"


def main() -> int:
    times = suggestions_ms()
    early, last = times[10:60], times[-50:]
    print(f"suggestion  11 to 60:    {shown(early)}")
    print(
        f"suggestion 951 to 1000:  {shown(last)}   {statistics.median(last) / statistics.median(early):.1f} times"
    )
    over = sorted(last)[int(len(last) * 0.99)] >= LIMIT_MS
    print(f"limit at the 1,000th: {LIMIT_MS} ms: {'exceeded' if over else 'kept'}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
