"""JobService alone: `python -m tests.stack.jobs.alone STATE BUCKETS IMAGE=DIR [FIELD=VALUE …]`, with fields of `Jobs`.

Prints its URL. The jobs' log entries are discarded.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from trainstack.http import serving
from trainstack.vertex import Jobs


async def serve(state: Path, buckets: Path, image: str, fields: dict[str, Any]) -> None:
    uri, _, tree = image.partition("=")
    jobs = Jobs(
        dir=state,
        buckets_dir=buckets,
        images=lambda: {uri: Path(tree)},
        write_log=lambda _entries: None,
        project="p1",
        **fields,
    )
    async with serving(jobs) as url:
        print(url, flush=True)  # noqa: T201  # for the test that started this
        await asyncio.Event().wait()


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[4:])
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], {"grace_s": 1.0, **given}))
