"""Runs all functions of a deployment, each in its own process, which starts with the function's first event.

All are loaded once when the stack starts, because one that cannot be loaded should fail `up` as it would fail a
deployment.
"""

import asyncio
import shutil
from collections.abc import Sequence

from trainstack.functions.function import Function, FunctionDeployment
from trainstack.functions.instance import Instance, StartFailedError
from trainstack.process.scratch import empty_folder


class FunctionsHost:
    """One instance per function, live between `start` and `stop`."""

    def __init__(self, functions: Sequence[Function], deployment: FunctionDeployment) -> None:
        """Open a port and make a home for each function.

        Raises:
            OSError: the state folder is not writable.
        """
        self._homes = empty_folder("tm-home", deployment.state)
        self._server = deployment.server
        self.instances = {
            function.name: Instance(function, deployment, home=self._homes / function.name)
            for function in functions
        }

    async def start(self) -> None:
        """Load all functions in one process that ends; return when every function waits for requests.

        Raises:
            StartFailedError: one or more cannot be loaded, each with its reason.
        """
        points = {instance: instance.function.entry_point for instance in self.instances.values()}
        try:
            for first in list(points)[:1]:
                await first.load(*points.values())
        except StartFailedError as failure:  # of one of them: which?
            loads = [instance.load(point) for instance, point in points.items()]
            outcomes = await asyncio.gather(*loads, return_exceptions=True)
            reasons = [str(outcome) for outcome in outcomes if outcome] or [str(failure)]
            raise StartFailedError("\n".join(reasons)) from failure
        for instance in points:
            instance.start()

    async def stop(self) -> None:
        """End every function and the server. Safe to call twice."""
        await asyncio.gather(*(instance.stop() for instance in self.instances.values()))
        await self._server.stop()
        shutil.rmtree(self._homes, ignore_errors=True)
