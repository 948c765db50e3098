"""Where injections strike Cloud Logging: its methods, such as `entries.write`, and the exports of sinks."""

import json
import re
from collections.abc import Callable, Sequence

from starlette.types import Scope

from trainmaster.local.injections import Call, Injections
from trainmaster.local.injections.apply import send_on
from trainmaster.local.outbox import Send
from trainmaster.local.publisher import Message, Publish

_ENTRIES = re.compile(r"/v2/entries:(write|list)")
_SINKS = re.compile(r"/v2/(projects/[^/]+/sinks(?:/(.+))?)")
_METHODS = {
    ("GET", False): "list",
    ("POST", False): "create",
    ("GET", True): "get",
    ("PUT", True): "update",
    ("PATCH", True): "update",
    ("DELETE", True): "delete",
}


def named(scope: Scope) -> str | None:
    """The method, as in the discovery document; None for a path that only the emulator has."""
    if entries := _ENTRIES.fullmatch(scope["path"]):
        return f"entries.{entries[1]}"
    if sinks := _SINKS.fullmatch(scope["path"]):
        method = _METHODS.get((scope["method"], sinks[2] is not None))
        return f"sinks.{method}" if method else None
    return None


def subjects(scope: Scope, body: bytes) -> tuple[str, ...]:
    """For written entries, the names of their logs, each once; else the resource's full name."""
    if sinks := _SINKS.fullmatch(scope["path"]):
        return (sinks[1],)
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(request, dict):
        return ()
    entries = request.get("entries")
    named = [request, *(entries if isinstance(entries, list) else [])]
    logs = [each.get("logName") for each in named if isinstance(each, dict)]
    return tuple(dict.fromkeys(log for log in logs if isinstance(log, str) and log))


def exporting(publish: Publish, injections: Injections, topic_of: Callable[[str], str]) -> Send:
    """`publish` for a sink by its full name, with the injections at `logging.export`."""

    async def export(sink: str, messages: Sequence[Message]) -> None:
        topic = topic_of(sink)
        call = Call(at="logging.export", subjects=(sink, topic))
        await send_on(injections, call, lambda: publish(topic, messages))

    return export
