"""Background tasks of a service, ended together."""

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancel_all(tasks: Iterable["asyncio.Future[Any]"]) -> None:
    """Cancel the tasks and wait for each to end.

    Their exceptions are dropped: no caller is left to handle them.
    """
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)
