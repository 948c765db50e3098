"""Background tasks of a service, ended together."""

import asyncio
from collections.abc import Iterable


async def cancel_all(tasks: Iterable["asyncio.Task[None]"]) -> None:
    """Cancel the tasks and wait for each to end. What they raise is dropped: nobody is left to act on it."""
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)
