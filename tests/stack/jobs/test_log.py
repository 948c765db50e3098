"""The log of a job, before Cloud Logging."""

import asyncio
import time
from collections.abc import Sequence

from trainstack.jobs.runners.log import Entry, JobLog
from trainstack.process.output import OutputStream

WRITE_S = 0.1


def test_a_flood_of_lines_pauses_as_long_as_they_take_to_write() -> None:
    written = list[int]()

    async def write(entries: Sequence[Entry]) -> None:
        await asyncio.sleep(WRITE_S)
        written.append(len(entries))

    async def flood() -> float:
        log = JobLog(write, project_id="p", job_id="1")
        began_s = time.monotonic()
        for _ in range(2):
            await log.worker("workerpool0-0", OutputStream.STDOUT, [b"line"] * 1000)
        took_s = time.monotonic() - began_s
        await log.close()
        return took_s

    assert asyncio.run(flood()) >= 4 * WRITE_S
    assert written == [1000, 1000]
