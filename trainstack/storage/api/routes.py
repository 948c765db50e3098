"""Routes requests to methods. Paths are matched before decoding, because an object's name may have slashes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import parse_qsl, unquote

from starlette.responses import Response
from starlette.types import Scope

from trainstack.json_bodies import not_served
from trainstack.storage.api import access_controls as acls
from trainstack.storage.api import batch, buckets, copies, notifications, objects, policies, uploads, xml
from trainstack.storage.api.call import Call
from trainstack.storage.objects.errors import RefusedError, invalid

Method = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """`name` is the method's name in Google's discovery document; `marker` a parameter that only its requests have."""

    verb: str
    pattern: re.Pattern[str]
    name: str
    method: Method
    marker: str = ""


def _route(verb: str, pattern: str, name: str, method: Method, marker: str = "") -> Route:
    return Route(verb=verb, pattern=re.compile(pattern), name=name, method=method, marker=marker)


_ROOT = "/storage/v1"
_BUCKET = f"{_ROOT}/b/(?P<bucket>[^/]+)"
_OBJECT = f"{_BUCKET}/o/(?P<object>.+)"
_TO = "b/(?P<to_bucket>[^/]+)/o/(?P<to_object>.+)"
_UPLOAD = f"(?:/resumable)?/upload{_BUCKET}/o"
_FOLDER = f"{_BUCKET}/managedFolders/(?P<folder>[^/]+)"
_TEST = "iam/testPermissions"
_NOTIFICATION = f"{_BUCKET}/notificationConfigs/(?P<notification>[^/]+)"

_XML = re.compile(r"/(?!(?:storage|upload|download|resumable|batch|emulator|v2)/|_stats$).*", re.DOTALL)
"""Paths of the XML API, which begin with a bucket; the others are the JSON API's and the stack's own."""
_XML_BUCKET = "/(?P<bucket>[^/]+)/?"
_XML_OBJECT = "/(?P<bucket>[^/]+)/(?P<object>.+)"
_GRPC_LAYOUT = "/v2/projects/_/buckets/(?P<bucket>[^/]+)/storageLayout"
"""By which GetStorageLayout comes over gRPC, where bucket names are full resource names."""

_AGENT = f"{_ROOT}/projects/(?P<project>[^/]+)/serviceAccount"
ACCESS = re.compile(
    f"{_BUCKET}(?:/o/[^/]+/(?:acl(?:/[^/]+)?|iam(?:/testPermissions)?|viewFullContext)|/(?:acl|defaultObjectAcl)(?:/[^/]+)?)"
)
"""Methods on access to an object, and ACLs of a bucket; never names, whose slashes are %2F."""

_ENTITY = "/(?P<entity>[^/]+)"
_ACL_ROUTES = tuple(
    _route(verb, f"{acl}{inner}", f"{kind}AccessControls.{name}", method)
    for kind, acl in (
        ("bucket", f"{_BUCKET}/acl"),
        ("defaultObject", f"{_BUCKET}/defaultObjectAcl"),
        ("object", f"{_BUCKET}/o/(?P<object>[^/]+)/acl"),
    )
    for verb, inner, name, method in (
        ("GET", "", "list", acls.list_all),
        ("POST", "", "insert", acls.change),
        ("GET", _ENTITY, "get", acls.get),
        ("PATCH", _ENTITY, "patch", acls.change),
        ("PUT", _ENTITY, "update", acls.change),
        ("DELETE", _ENTITY, "delete", acls.change),
    )
)
_PLAIN_ROUTES: tuple[Route, ...] = (
    _route("GET", _OBJECT, "objects.get", objects.get),
    _route("GET", f"/download{_OBJECT}", "objects.get", objects.download),
    _route("HEAD", f"/download{_OBJECT}", "objects.get", objects.download),
    _route("POST", "/batch/storage/v1", "batch", batch.run),
    _route("POST", _UPLOAD, "objects.insert", uploads.send, "upload_id"),  # as gcsfs continues a session
    _route("POST", _UPLOAD, "objects.insert", uploads.insert),
    _route("PUT", _UPLOAD, "objects.insert", uploads.send, "upload_id"),
    _route("DELETE", _UPLOAD, "objects.cancelUpload", uploads.cancel, "upload_id"),
    _route("GET", f"{_BUCKET}/o", "objects.list", objects.list_all),
    _route("DELETE", _OBJECT, "objects.delete", objects.delete),
    _route("PATCH", _OBJECT, "objects.patch", objects.patch),
    _route("PUT", _OBJECT, "objects.update", objects.patch),
    _route("POST", f"{_OBJECT}/copyTo/{_TO}", "objects.copy", copies.copy),
    _route("POST", f"{_OBJECT}/rewriteTo/{_TO}", "objects.rewrite", copies.rewrite),
    _route("POST", f"{_OBJECT}/moveTo/o/(?P<to_object>.+)", "objects.move", copies.move),
    _route("POST", f"{_OBJECT}/restore", "objects.restore", copies.restore),
    _route("POST", f"{_OBJECT}/compose", "objects.compose", copies.compose),
    _route("GET", _AGENT, "projects.serviceAccount.get", policies.service_account),
    _route("GET", f"{_ROOT}/b", "buckets.list", buckets.list_all),
    _route("POST", f"{_ROOT}/b", "buckets.insert", buckets.insert),
    _route("GET", _BUCKET, "buckets.get", buckets.get),
    _route("PATCH", _BUCKET, "buckets.patch", buckets.patch),
    _route("PUT", _BUCKET, "buckets.update", buckets.patch),
    _route("DELETE", _BUCKET, "buckets.delete", buckets.delete),
    _route("POST", f"{_BUCKET}/lockRetentionPolicy", "buckets.lockRetentionPolicy", buckets.lock_policy),
    _route("GET", f"{_BUCKET}/storageLayout", "buckets.getStorageLayout", buckets.storage_layout),
    _route("GET", _GRPC_LAYOUT, "buckets.getStorageLayout", buckets.storage_layout),
    _route("GET", f"{_BUCKET}/managedFolders", "managedFolders.list", buckets.managed_folders),
    _route("GET", f"{_FOLDER}/iam", "managedFolders.getIamPolicy", policies.get_iam_policy),
    _route("GET", f"{_FOLDER}/{_TEST}", "managedFolders.testIamPermissions", policies.test_permissions),
    _route("GET", f"{_BUCKET}/iam", "buckets.getIamPolicy", policies.get_iam_policy),
    _route("PUT", f"{_BUCKET}/iam", "buckets.setIamPolicy", policies.set_iam_policy),
    _route("GET", f"{_BUCKET}/{_TEST}", "buckets.testIamPermissions", policies.test_permissions),
    _route("GET", f"{_BUCKET}/notificationConfigs", "notifications.list", notifications.list_all),
    _route("POST", f"{_BUCKET}/notificationConfigs", "notifications.insert", notifications.insert),
    _route("GET", _NOTIFICATION, "notifications.get", notifications.get),
    _route("DELETE", _NOTIFICATION, "notifications.delete", notifications.delete),
)
ROUTES = (*_ACL_ROUTES, *_PLAIN_ROUTES)
XML_ROUTES: tuple[Route, ...] = (
    _route("GET", _XML_OBJECT, "objects.get", xml.get),
    _route("HEAD", _XML_OBJECT, "objects.get", xml.get),
    _route("GET", _XML_BUCKET, "objects.list", xml.list_all),
    _route("PUT", _XML_OBJECT, "objects.insert", xml.put_part, "uploadId"),
    _route("PUT", _XML_OBJECT, "objects.insert", xml.put_object),
    _route("POST", _XML_OBJECT, "objects.insert", xml.begin, "uploads"),
    _route("POST", _XML_OBJECT, "objects.insert", xml.complete, "uploadId"),
    _route("POST", _XML_OBJECT, "objects.insert", xml.begin_session),
    # An upload's id is the authorization to cancel it, as a session's URI is.
    _route("DELETE", _XML_OBJECT, "objects.cancelUpload", xml.cancel, "uploadId"),
    _route("DELETE", _XML_OBJECT, "objects.delete", xml.delete),
)


def is_xml(scope: Scope) -> bool:
    """Whether a request is one of the XML API, and so are its errors."""
    return _XML.fullmatch(_raw_path(scope)) is not None


def route_for(scope: Scope) -> tuple[Route, Mapping[str, str]]:
    """The route of a request and the decoded variables of its path.

    Raises:
        RefusedError: 400 for a method that is not imitated, or a path that is not UTF-8 when decoded.
    """
    query = scope["query_string"] if b"upload" in scope["query_string"] else b""
    return _route_for(scope["method"], _raw_path(scope), query.decode("latin-1"))


def _raw_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("ascii", errors="replace")


@lru_cache(maxsize=256)  # several layers ask about each request
def _route_for(verb: str, raw_path: str, query: str) -> tuple[Route, Mapping[str, str]]:
    given = {name for name, _ in parse_qsl(query, keep_blank_values=True)} | {""}
    routes = XML_ROUTES if (of_xml := _XML.fullmatch(raw_path)) else _PLAIN_ROUTES
    if ACCESS.fullmatch(raw_path):
        routes = _ACL_ROUTES
    for route in routes:
        if route.verb == verb and route.marker in given and (match := route.pattern.fullmatch(raw_path)):
            try:
                parts = {name: unquote(part, errors="strict") for name, part in match.groupdict().items()}
            except UnicodeDecodeError:
                raise invalid(f"Invalid path: {raw_path!r} is not UTF-8 when decoded.") from None
            return route, MappingProxyType(parts)
    if of_xml:
        raise xml.not_served(verb, raw_path)
    raise RefusedError(400, "notImplemented", not_served(f"{verb} {raw_path}"))
