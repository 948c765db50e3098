"""The wire surfaces of the local stack and of the functions, each started on a separate folder and fuzzed.

What holds for each: an answer that is meant, no file outside its folder written or shown, and a server that lives on.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Protocol

from google.api_core.exceptions import AlreadyExists, NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from tests.core.fuzz import seeds
from tests.core.fuzz.verdicts import Finding, Verdict, promised
from tests.stack.functions.hosted import hosted
from tests.stack.fuzz import shapes
from tests.stack.fuzz.http_requests import Drawing, HttpRequest, asked
from tests.stack.services import Services, deployed_grants, every_service
from trainmaster.deploy.stage import stage
from trainstack.events.clients import clients_of
from trainstack.http import in_thread
from trainstack.iam.api import TAKEN

_HERE = f"projects/{shapes.PROJECT}"
CANARY = b"nobody may read this: 7c1f"


class Target(Protocol):
    """A running surface that is fed."""

    # Any: a request, of one of several servers or of one.
    def draw(self, random: Random) -> Any: ...

    def feed(self, given: Any) -> Verdict: ...

    def check(self) -> None:
        """The server lives and answers. Raises `Broken`."""


@dataclass(frozen=True, kw_only=True)
class HttpTarget:
    """`meant` are the statuses of 500 and above that the service means; `alive` is a request that is always taken.

    `own_failures` are the lines of the server's log about unexpected errors.
    `renew` makes what a request deleted, so that those after it do not all end at the front door.
    """

    drawing: Drawing
    port: int
    alive: HttpRequest
    meant: frozenset[int] = frozenset()
    own_failures: Callable[[], list[str]] = list
    renew: Callable[[], object] = lambda: None

    def draw(self, random: Random) -> HttpRequest:
        return self.drawing.request(random)

    def feed(self, given: HttpRequest) -> Verdict:
        answer = asked("127.0.0.1", self.port, given)
        fine = answer.status < 500 or answer.status in self.meant
        promised(holds=fine, promise="an answer that is meant", found=(answer.status, answer.body[:300]))
        promised(holds=CANARY not in answer.body, promise="no file of this machine", found=answer.body[:300])
        promised(holds=b"root:x:0" not in answer.body, promise="no file of this machine", found=answer.body)
        if given.foreign:
            # The first line may be broken as well, which is refused before the guard sees it.
            promised(
                holds=answer.status in {0, 400, 403, 405, 501},
                promise="another site is refused",
                found=answer.status,
            )
        if answer.status == 0:
            promised(
                holds=given.may_lack_its_end,
                promise="an answer",
                found="the connection was closed without one",
            )
            return Verdict.PASSED_OVER
        if answer.status < 400 and given.verb == "DELETE":
            self.renew()
        return Verdict.TAKEN if answer.status < 400 else Verdict.REFUSED

    def check(self) -> None:
        answer = asked("127.0.0.1", self.port, self.alive)
        promised(holds=answer.status == 200, promise="a server that lives on", found=answer.status)
        failures = self.own_failures()
        promised(holds=not failures, promise="no unexpected error", found=failures[:3])


@dataclass(frozen=True, kw_only=True)
class Surface:
    """`started` runs the server on a folder and gives what is fed."""

    name: str
    started: Callable[[Path], AbstractContextManager[Target]]


@contextlib.contextmanager
def guarded(surface: Surface, folder: Path) -> Iterator[Target]:
    """The surface on `folder`/a/b/state, whose neighbours must be the same afterwards. Raises `Broken`."""
    state = folder / "a" / "b" / "state"
    state.mkdir(parents=True)
    for place in (folder, folder / "a", folder / "a" / "b"):
        (place / "canary.txt").write_bytes(CANARY)
    with surface.started(state) as target:
        yield target
        target.check()
    left = sorted(str(each.relative_to(folder)) for each in _outside(folder, state))
    promised(
        holds=left == ["a/b/canary.txt", "a/canary.txt", "canary.txt"],
        promise="no file elsewhere",
        found=left,
    )


def _outside(folder: Path, state: Path) -> Iterator[Path]:
    for root, directories, files in os.walk(folder):
        directories[:] = [each for each in directories if Path(root) / each != state]
        yield from (Path(root) / each for each in files)


def fed_wire(target: Target, name: str, seed: int, number: int) -> Verdict | Finding:
    """The outcome of one request. Anything but an intended answer is a finding."""
    given = target.draw(Random(f"{seed}/{name}/{number}"))
    try:
        return target.feed(given)
    except Exception as error:
        return Finding(
            parser=name,
            number=number,
            error=f"{type(error).__name__}: {error}"[:400],
            given=repr(given)[:900],
        )


@contextlib.contextmanager
def _services(state: Path) -> Iterator[Services]:
    with in_thread(lambda: every_service(state, deployed_grants(shapes.PROJECT))) as services:
        (state / "storage" / "buckets" / shapes.BUCKET).mkdir(exist_ok=True)  # where jobs write
        yield services


@contextlib.contextmanager
def _client(services: Services) -> Iterator[Client]:
    options = {"api_endpoint": services.urls["storage"]}
    client = Client(project=shapes.PROJECT, credentials=AnonymousCredentials(), client_options=options)
    yield client
    client.close()


@contextlib.contextmanager
def _storage(state: Path) -> Iterator[Target]:
    with _services(state) as services, _client(services) as client:
        bucket = client.create_bucket(shapes.BUCKET)

        def provide() -> None:
            for name in ("a.txt", shapes.STORAGE.words[0]):  # the words that requests name most
                bucket.blob(name).upload_from_string("canary")

        provide()
        target = _target(services, "storage", shapes.STORAGE, f"/storage/v1/b/{shapes.BUCKET}")
        # 503: the file of an object is being written at this moment.
        yield replace(target, meant=frozenset({501, 503}), renew=provide)


def _target(services: Services, name: str, drawing: Drawing, alive: str) -> HttpTarget:
    """Of a service that answers 501 to what the real one does and it does not."""
    port = int(services.urls[name].rpartition(":")[2])
    request = HttpRequest(verb="GET", target=alive)
    return HttpTarget(drawing=drawing, port=port, alive=request, meant=frozenset({501}))


def _rest(name: str, drawing: Drawing, alive: str) -> Surface:
    @contextlib.contextmanager
    def started(state: Path) -> Iterator[Target]:
        with _services(state) as services:
            yield _target(services, name, drawing, alive)

    return Surface(name=name, started=started)


@contextlib.contextmanager
def _pubsub(state: Path) -> Iterator[Target]:
    with _services(state) as services, clients_of(f"127.0.0.1:{services.pubsub}") as clients:
        topic, subscription = (f"{_HERE}/{kind}/{shapes.PROJECT}" for kind in ("topics", "subscriptions"))

        def provide() -> None:
            with contextlib.suppress(AlreadyExists):
                clients.publisher.create_topic(name=topic)
            with contextlib.suppress(NotFound):  # it may have lost its topic
                clients.subscriber.delete_subscription(subscription=subscription)
            clients.subscriber.create_subscription(name=subscription, topic=topic)

        provide()
        yield replace(_target(services, "pubsub", shapes.PUBSUB, f"/v1/{_HERE}/topics"), renew=provide)


@dataclass(frozen=True)
class Together:
    """Several servers of one folder; each request is to one of them."""

    targets: Sequence[HttpTarget]

    def draw(self, random: Random) -> tuple[int, HttpRequest]:
        number = random.randrange(len(self.targets))
        return number, self.targets[number].draw(random)

    def feed(self, given: tuple[int, HttpRequest]) -> Verdict:
        number, request = given
        return self.targets[number].feed(request)

    def check(self) -> None:
        for target in self.targets:
            target.check()


_MESSAGE = "google.cloud.pubsub.topic.v1.messagePublished"
_OBJECT = "google.cloud.storage.object.v1.finalized"
_EVENTS: Mapping[str, tuple[str, list[Any]]] = {
    "on_request_uploaded": (_OBJECT, seeds.UPLOADS),
    "on_request_published": (_MESSAGE, shapes.pubsub_data([*seeds.OWN, *seeds.AI_PLATFORM, *seeds.TUNING])),
    "on_job_log": (_MESSAGE, shapes.pubsub_data(seeds.LOG_ENTRIES)),
    "on_data_arrived": (_OBJECT, [{**seeds.UPLOADS[0], "bucket": "my-project-data"}]),
    "on_image_pushed": (_MESSAGE, shapes.pubsub_data(seeds.PUSHES)),
    "on_alert": (_MESSAGE, shapes.pubsub_data(seeds.ALERTS)),
    "on_notice": (_MESSAGE, shapes.pubsub_data(seeds.NOTICES)),
    "on_notice_out": (_MESSAGE, shapes.pubsub_data(seeds.NOTICES)),
}
"""By entry point, the type of its events, and their data."""


_BUCKETS = ("inbox", "ledger", "models", "champions")


@contextlib.contextmanager
def _functions(state: Path) -> Iterator[Target]:
    """All functions of the staged source, in their processes as the local stack runs them."""
    stage(state / "source", bytecode=True)
    with _services(state) as services, _client(services) as client:
        host = f"127.0.0.1:{services.pubsub}"
        with clients_of(host) as clients:
            clients.publisher.create_topic(name=f"projects/{shapes.PROJECT}/topics/notices")
        for role in _BUCKETS:
            client.create_bucket(f"{shapes.PROJECT}-{role}")
        environment = {
            "GOOGLE_CLOUD_PROJECT": shapes.PROJECT,
            "TRAINMASTER_REGION": shapes.REGION,
            **{f"TRAINMASTER_{role.upper()}_BUCKET": f"{shapes.PROJECT}-{role}" for role in _BUCKETS},
            "TRAINMASTER_NOTICES_TOPIC": "notices",
            "STORAGE_EMULATOR_HOST": services.urls["storage"],
            "PUBSUB_EMULATOR_HOST": host,
            "VERTEX_EMULATOR_HOST": services.urls["vertex"],
            "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true",
        }
        source = state / "source"
        with hosted(*_EVENTS, source=source, state=state, environment=environment, timeout_s=60) as instances:
            yield Together(
                [
                    HttpTarget(
                        drawing=shapes.function_drawing(kind, data),
                        port=int(instance.url.rpartition(":")[2]),
                        alive=_event_request(kind, data[0]),
                        meant=frozenset({500}),  # of functions-framework, for what is no event
                        own_failures=lambda: _critical_lines(state / "logs"),
                    )
                    for instance, (kind, data) in zip(instances.values(), _EVENTS.values(), strict=True)
                ]
            )


def _event_request(kind: str, data: object) -> HttpRequest:
    event = {"ce-id": "1", "ce-source": "s", "ce-specversion": "1.0", "ce-type": kind}
    headers = tuple({**event, "content-type": "application/json"}.items())
    return HttpRequest(verb="POST", target="/", headers=headers, body=json.dumps(data).encode())


def _critical_lines(logs: Path) -> list[str]:
    """functions/main.py logs so whatever its flows raise that has no name."""
    lines = (line for file in logs.rglob("*.log") for line in file.read_text(errors="replace").splitlines())
    return [line[:2000] for line in lines if '"CRITICAL"' in line]


SURFACES = (
    Surface(name="storage", started=_storage),
    _rest("vertex", shapes.VERTEX, f"/v1/{shapes.PARENT}/customJobs?pageSize=1"),
    _rest("logging", shapes.LOGGING, "/_stats"),
    _rest("iam", shapes.IAM, TAKEN),
    Surface(name="pubsub", started=_pubsub),
    Surface(name="functions", started=_functions),
)
