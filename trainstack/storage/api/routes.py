"""Routes requests to methods. Paths are matched before decoding, because an object's name may have slashes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import unquote

from starlette.responses import Response
from starlette.types import Scope

from trainstack.storage.api import buckets, copies, notifications, objects, uploads
from trainstack.storage.api.call import Call
from trainstack.storage.objects.errors import RefusedError, invalid

Method = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """`name` is the method's name in Google's discovery document."""

    verb: str
    pattern: re.Pattern[str]
    name: str
    method: Method


_ROOT = "/storage/v1"
_BUCKET = f"{_ROOT}/b/(?P<bucket>[^/]+)"
_OBJECT = f"{_BUCKET}/o/(?P<object>.+)"
_TO = "b/(?P<to_bucket>[^/]+)/o/(?P<to_object>.+)"
_UPLOAD = f"(?:/resumable)?/upload{_BUCKET}/o"
_FOLDER = f"{_BUCKET}/managedFolders/(?P<folder>[^/]+)"
_NOTIFICATION = f"{_BUCKET}/notificationConfigs/(?P<notification>[^/]+)"

_GRPC_LAYOUT = "/v2/projects/_/buckets/(?P<bucket>[^/]+)/storageLayout"
"""By which GetStorageLayout comes over gRPC, where bucket names are full resource names."""

_OWN = "(?:storage|upload|download|resumable|batch|emulator)/"
"""Prefixes of the JSON API's paths and the stack's own: they are not buckets of the XML API."""

ROUTES = tuple(
    Route(verb=verb, pattern=re.compile(pattern), name=name, method=method)
    for verb, pattern, name, method in (
        ("GET", _OBJECT, "objects.get", objects.get),
        ("GET", f"/download{_OBJECT}", "objects.get", objects.download),
        ("HEAD", f"/download{_OBJECT}", "objects.get", objects.download),
        ("POST", _UPLOAD, "objects.insert", uploads.insert),
        ("PUT", _UPLOAD, "objects.insert", uploads.send),
        ("DELETE", _UPLOAD, "objects.cancelUpload", uploads.cancel),
        ("GET", f"{_BUCKET}/o", "objects.list", objects.list_all),
        ("DELETE", _OBJECT, "objects.delete", objects.delete),
        ("PATCH", _OBJECT, "objects.patch", objects.patch),
        ("POST", f"{_OBJECT}/copyTo/{_TO}", "objects.copy", copies.copy),
        ("POST", f"{_OBJECT}/rewriteTo/{_TO}", "objects.rewrite", copies.rewrite),
        ("POST", f"{_OBJECT}/compose", "objects.compose", copies.compose),
        ("GET", f"{_ROOT}/b", "buckets.list", buckets.list_all),
        ("POST", f"{_ROOT}/b", "buckets.insert", buckets.insert),
        ("GET", _BUCKET, "buckets.get", buckets.get),
        ("DELETE", _BUCKET, "buckets.delete", buckets.delete),
        ("GET", f"{_BUCKET}/storageLayout", "buckets.getStorageLayout", buckets.storage_layout),
        ("GET", _GRPC_LAYOUT, "buckets.getStorageLayout", buckets.storage_layout),
        ("GET", f"{_BUCKET}/managedFolders", "managedFolders.list", buckets.managed_folders),
        ("GET", f"{_FOLDER}/iam", "managedFolders.getIamPolicy", buckets.get_iam_policy),
        (
            "GET",
            f"{_FOLDER}/iam/testPermissions",
            "managedFolders.testIamPermissions",
            buckets.test_iam_permissions,
        ),
        ("GET", f"{_BUCKET}/iam", "buckets.getIamPolicy", buckets.get_iam_policy),
        ("GET", f"{_BUCKET}/iam/testPermissions", "buckets.testIamPermissions", buckets.test_iam_permissions),
        ("GET", f"{_BUCKET}/notificationConfigs", "notifications.list", notifications.list_all),
        ("POST", f"{_BUCKET}/notificationConfigs", "notifications.insert", notifications.insert),
        ("GET", _NOTIFICATION, "notifications.get", notifications.get),
        ("DELETE", _NOTIFICATION, "notifications.delete", notifications.delete),
        # Reads through the XML API, which TensorFlow's client uses besides the JSON API.
        (
            "GET",
            rf"/(?!{_OWN})(?P<bucket>[a-z0-9][a-z0-9._-]+)/(?P<object>.+)",
            "objects.get",
            objects.download,
        ),
    )
)


def route_for(scope: Scope) -> tuple[Route, Mapping[str, str]]:
    """The route of a request and the decoded variables of its path.

    Raises:
        RefusedError: 404 for an unsupported path, 405 for a verb that the path does not support, 400 for a
            path that is not UTF-8 when decoded.
    """
    return _route_for(
        scope["method"], (scope.get("raw_path") or scope["path"].encode()).decode("ascii", errors="replace")
    )


@lru_cache(maxsize=256)  # several layers ask about each request
def _route_for(verb: str, raw_path: str) -> tuple[Route, Mapping[str, str]]:
    for route in ROUTES:
        if route.verb == verb and (match := route.pattern.fullmatch(raw_path)):
            try:
                parts = {name: unquote(part, errors="strict") for name, part in match.groupdict().items()}
            except UnicodeDecodeError:
                raise invalid(f"Invalid path: {raw_path!r} is not UTF-8 when decoded.") from None
            return route, MappingProxyType(parts)
    if any(route.pattern.fullmatch(raw_path) for route in ROUTES):
        raise RefusedError(405, "methodNotAllowed", f"{verb} is not supported here: {raw_path}")
    raise RefusedError(404, "notFound", f"No such method in this emulator: {verb} {raw_path}")
