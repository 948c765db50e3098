"""The complete emulator: an ASGI application, the buckets' folder, and background tasks."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.http import LoopbackOnly, in_thread, serving
from trainstack.iam.authentication import Authenticated
from trainstack.iam.principals import SigningKeys, Tokens
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.injections.active import injected_send
from trainstack.injections.http import WithInjections
from trainstack.json_bodies import google_error, insufficient_storage, is_disk_full
from trainstack.publisher import Publish
from trainstack.storage.api.access_controls import add_lists
from trainstack.storage.api.call import JSON_TYPE, Call, json_answer
from trainstack.storage.api.routes import is_xml, route_for
from trainstack.storage.api.xml import xml_error
from trainstack.storage.authorization import may_call, without_listing
from trainstack.storage.drops.scanner import DropScanner
from trainstack.storage.drops.threads import BucketThreads
from trainstack.storage.drops.watching import Watch
from trainstack.storage.fields import partial
from trainstack.storage.injections import method_of, notification_subjects, subjects
from trainstack.storage.notifications import with_links
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.public_data import SERVICE, PublicData
from trainstack.storage.service import StorageService, UploadSessions
from trainstack.storage.signed_urls import SignedUrls
from trainstack.storage.store import ObjectStore
from trainstack.tasks import cancel_all

_LOOK_AGAIN_S = 0.1
_REFRESH_S = 5.0
_REFRESH_SHARE = 50  # the rescan takes at most 1/50 of the time

_log = logging.getLogger(__name__)


class Storage:
    """Cloud Storage over the buckets in one directory: an ASGI application, active between `start` and `stop`."""

    def __init__(
        self,
        *,
        dir: Path | str,  # noqa: A002  # reads best at the call
        publish: Publish | None = None,
        injections: Injections | None = None,
        grants: Grants | None = None,
        tokens: Tokens | None = None,
        public_data: str = SERVICE,
    ) -> None:
        """Open the directory, creating it if needed.

        Without `publish`, notifications are kept until a later start has one. `injections` are shared with
        other emulators; None creates new ones. `grants` decide permissions; without them, every caller has
        all of them. `tokens` identify the principals of requests; without them, every request is the
        local user's. Anonymous reads through the gateway of buckets that do not exist here are forwarded to
        `public_data`.

        Raises:
            StateInUseError: another process has this directory open.
        """
        self.store = ObjectStore(Path(dir))
        self.scanner = DropScanner(self.store)
        self._threads = BucketThreads(self.scanner)
        self._service = StorageService(
            store=self.store,
            threads=self._threads,
            uploads=UploadSessions(self.store.uploads_path),
            grants=grants,
        )
        for bucket in self.store.catalog.buckets():
            self._service.apply_policy(bucket)
        injections = injections or Injections()
        self._injections, self._publish = injections, publish
        called = WithInjections(
            app=self._answer, injections=injections, service="storage", method_of=method_of, subjects=subjects
        )
        self._authenticated: ASGIApp = Authenticated(called, tokens, anonymous=True)
        self._public = PublicData(
            app=self._authenticated,
            has_bucket=lambda name: self.store.catalog.find_bucket(name) is not None,
            url=public_data,
        )
        self._guarded: ASGIApp = LoopbackOnly(
            SignedUrls(app=self._public, called=called, keys=tokens.keys if tokens else SigningKeys())
        )
        self._watch: Watch | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._guarded(scope, receive, send)

    async def start(self, url: str = "http://127.0.0.1") -> None:
        """Watch the folders, record changes since the last run, and deliver notifications, with links to `url`."""
        self._watch = Watch(self.store.buckets_path)
        self.scanner.before_listing = self._watch.add
        self._watch.start(self._threads.hint, self._threads.hint_lost)
        await asyncio.gather(*map(self._rescan, self.scanner.buckets()))
        work = [self._look_again(), self._refresh()]
        if self._publish:
            publish = with_links(self._publish, url)
            send = injected_send(self._injections, "storage.notify", publish, notification_subjects)
            work.append(self.store.notifications.outbox.run(send))
        self._tasks = [asyncio.create_task(job) for job in work]

    async def stop(self) -> None:
        """Stop the background tasks and close the files; stop the server that uses this application first.

        Pending notifications are delivered after the next start, by a new `Storage`.
        """
        tasks, self._tasks = self._tasks, []
        await cancel_all(tasks)
        watch, self._watch = self._watch, None
        if watch:
            await asyncio.to_thread(watch.stop)
        await asyncio.to_thread(self._threads.close)
        await self._public.close()
        self._service.uploads.close()
        self.store.close()

    async def _look_again(self) -> None:
        async def look(bucket: str) -> None:
            await self._try(bucket, self._threads.run(bucket, self.scanner.look_again, bucket))

        await self._repeat(look, self.scanner.waiting_buckets, _LOOK_AGAIN_S)

    async def _refresh(self) -> None:
        """Rescan every bucket now and then, to find what the watch missed."""

        async def refresh(bucket: str) -> None:
            began = time.monotonic()
            await self._rescan(bucket)
            await asyncio.sleep(_REFRESH_SHARE * (time.monotonic() - began))

        await self._repeat(refresh, self.scanner.buckets, _REFRESH_S)

    async def _repeat(
        self,
        work: Callable[[str], Coroutine[None, None, None]],
        buckets: Callable[[], Iterable[str]],
        pause_s: float,
    ) -> None:
        """Begin the work of each bucket again and again, once its last has ended: none waits for another's."""
        async with asyncio.TaskGroup() as group:
            running: dict[str, asyncio.Task[None]] = {}
            while True:
                await asyncio.sleep(pause_s)
                running = {bucket: task for bucket, task in running.items() if not task.done()}
                for bucket in set(buckets()) - running.keys():
                    running[bucket] = group.create_task(work(bucket))

    async def _rescan(self, bucket: str) -> None:
        await self._try(bucket, self._threads.wait_for_refresh(bucket))

    async def _try(self, bucket: str, look: Awaitable[None]) -> None:
        """Look for drops. On a full disk they cannot be recorded: a later look finds them."""
        try:
            await look
        except RefusedError as refused:  # the bucket is gone, or has more files than are listed
            if refused.code != 404:  # noqa: PLR2004  # Not Found
                _log.warning("dropped files in %s are not all recorded: %s", bucket, refused.message)
        except OSError as fault:
            _log.warning("dropped files in %s cannot be recorded now: %s", bucket, fault)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request({**scope, "app": self._authenticated}, receive))
        # TensorFlow's client finds `Location` and `Range` only in the service's capitalization.
        response.raw_headers = [(name.title(), value) for name, value in response.raw_headers]
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        try:
            route, path = route_for(request.scope)
            may_call(self._service.grants, self.store, f"storage.{route.name}", path, request.query_params)
            call = Call(request=request, path=path, service=self._service)
            if is_xml(request.scope):
                return await route.method(call)
            call.check(route.name)  # the table is of JSON methods
            return _as_asked(call, route.name, await route.method(call))
        except RefusedError as refused:
            await _drain(request)
            return _refusal(without_listing(self._service.grants, refused), of_xml=is_xml(request.scope))
        except ClientDisconnect:
            raise
        except Exception as fault:  # the client gets a retryable error, the log gets the reason
            if is_disk_full(fault):
                await _drain(request)
                return insufficient_storage(fault)
            _log.exception("%s %s failed", request.method, request.url.path)
            return google_error(
                500, "Internal error of the emulator; its log has the reason.", reason="backendError"
            )


def _as_asked(call: Call, method: str, answer: Response) -> Response:
    """The answer with owners and access control lists, or with the selected fields alone, if the query asks for that."""
    mask, is_full = call.query.get("fields"), call.wants_acl(method)
    is_resource = answer.status_code == 200 and answer.media_type == JSON_TYPE  # noqa: PLR2004  # OK
    if not is_resource or not (mask or is_full):
        return answer
    tree = json.loads(bytes(answer.body))
    if is_full:
        add_lists(call, tree)
    return json_answer(partial(tree, mask) if mask else tree)


def _refusal(refused: RefusedError, *, of_xml: bool) -> Response:
    if refused.code == 304:  # noqa: PLR2004  # Not Modified, which has no body
        return Response(status_code=304)
    if of_xml:
        return xml_error(refused)
    status = "UNIMPLEMENTED" if refused.reason == "notImplemented" else ""
    return google_error(
        refused.code, refused.message, reason=refused.reason, status=status, headers=refused.headers
    )


async def _drain(request: Request) -> None:
    """Read the rest of the body: a client that is still sending would take an early response for a broken connection."""
    try:
        async for _ in request.stream():
            pass
    except RuntimeError:  # already read to its end
        return


def serve(dir: Path | str, *, publish: Publish | None = None, port: int = 0) -> AbstractContextManager[str]:  # noqa: A002  # as above
    """Run an emulator over `dir` in a separate thread while the block runs; yields its URL. `port` 0 picks a free one."""
    return in_thread(lambda: serving(Storage(dir=dir, publish=publish), port=port))
