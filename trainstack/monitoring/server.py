"""The complete emulator: an ASGI application, and the meter that feeds it."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.iam.authentication import guarded_app
from trainstack.iam.principals import Tokens
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.injections.http import WithInjections
from trainstack.monitoring.api import application
from trainstack.monitoring.meter import SAMPLE_S, Meter
from trainstack.monitoring.samples import Samples
from trainstack.tasks import cancel_all


class Monitoring:
    """Cloud Monitoring over REST, with the samples of `meter` in memory. Active between `start` and `stop`."""

    def __init__(
        self,
        *,
        injections: Injections | None = None,
        tokens: Tokens | None = None,
        grants: Grants | None = None,
    ) -> None:
        """`injections`, `tokens` and `grants` are shared with other emulators: see `Logging`."""
        samples = Samples(SAMPLE_S)
        self.meter = Meter(samples)
        self._sampling: asyncio.Task[None] | None = None
        self._app: ASGIApp = guarded_app(
            WithInjections(
                app=application(samples, grants),
                injections=injections or Injections(),
                service="monitoring",
            ),
            tokens,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def start(self, _url: str = "") -> None:
        """Start sampling."""
        self._sampling = asyncio.create_task(self.meter.run())

    async def stop(self) -> None:
        """Stop sampling. Safe to call twice."""
        task, self._sampling = self._sampling, None
        if task:
            await cancel_all([task])
