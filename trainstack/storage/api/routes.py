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
    Route(verb=verb, pattern=re.compile(f"{acl}{inner}"), name=f"{kind}AccessControls.{name}", method=method)
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
_PLAIN_ROUTES = tuple(
    Route(verb=verb, pattern=re.compile(pattern), name=name, method=method, marker="".join(marker))
    for verb, pattern, name, method, *marker in (
        ("GET", _OBJECT, "objects.get", objects.get),
        ("GET", f"/download{_OBJECT}", "objects.get", objects.download),
        ("HEAD", f"/download{_OBJECT}", "objects.get", objects.download),
        ("POST", "/batch/storage/v1", "batch", batch.run),
        ("POST", _UPLOAD, "objects.insert", uploads.send, "upload_id"),  # as gcsfs continues a session
        ("POST", _UPLOAD, "objects.insert", uploads.insert),
        ("PUT", _UPLOAD, "objects.insert", uploads.send, "upload_id"),
        ("DELETE", _UPLOAD, "objects.cancelUpload", uploads.cancel, "upload_id"),
        ("GET", f"{_BUCKET}/o", "objects.list", objects.list_all),
        ("DELETE", _OBJECT, "objects.delete", objects.delete),
        ("PATCH", _OBJECT, "objects.patch", objects.patch),
        ("PUT", _OBJECT, "objects.update", objects.patch),
        ("POST", f"{_OBJECT}/copyTo/{_TO}", "objects.copy", copies.copy),
        ("POST", f"{_OBJECT}/rewriteTo/{_TO}", "objects.rewrite", copies.rewrite),
        ("POST", f"{_OBJECT}/moveTo/o/(?P<to_object>.+)", "objects.move", copies.move),
        ("POST", f"{_OBJECT}/restore", "objects.restore", copies.restore),
        ("POST", f"{_OBJECT}/compose", "objects.compose", copies.compose),
        ("GET", _AGENT, "projects.serviceAccount.get", policies.service_account),
        ("GET", f"{_ROOT}/b", "buckets.list", buckets.list_all),
        ("POST", f"{_ROOT}/b", "buckets.insert", buckets.insert),
        ("GET", _BUCKET, "buckets.get", buckets.get),
        ("PATCH", _BUCKET, "buckets.patch", buckets.patch),
        ("PUT", _BUCKET, "buckets.update", buckets.patch),
        ("DELETE", _BUCKET, "buckets.delete", buckets.delete),
        ("POST", f"{_BUCKET}/lockRetentionPolicy", "buckets.lockRetentionPolicy", buckets.lock_policy),
        ("GET", f"{_BUCKET}/storageLayout", "buckets.getStorageLayout", buckets.storage_layout),
        ("GET", _GRPC_LAYOUT, "buckets.getStorageLayout", buckets.storage_layout),
        ("GET", f"{_BUCKET}/managedFolders", "managedFolders.list", buckets.managed_folders),
        ("GET", f"{_FOLDER}/iam", "managedFolders.getIamPolicy", policies.get_iam_policy),
        ("GET", f"{_FOLDER}/{_TEST}", "managedFolders.testIamPermissions", policies.test_permissions),
        ("GET", f"{_BUCKET}/iam", "buckets.getIamPolicy", policies.get_iam_policy),
        ("PUT", f"{_BUCKET}/iam", "buckets.setIamPolicy", policies.set_iam_policy),
        ("GET", f"{_BUCKET}/{_TEST}", "buckets.testIamPermissions", policies.test_permissions),
        ("GET", f"{_BUCKET}/notificationConfigs", "notifications.list", notifications.list_all),
        ("POST", f"{_BUCKET}/notificationConfigs", "notifications.insert", notifications.insert),
        ("GET", _NOTIFICATION, "notifications.get", notifications.get),
        ("DELETE", _NOTIFICATION, "notifications.delete", notifications.delete),
    )
)
ROUTES = (*_ACL_ROUTES, *_PLAIN_ROUTES)
XML_ROUTES = tuple(
    Route(verb=verb, pattern=re.compile(pattern), name=name, method=method, marker="".join(marker))
    for verb, pattern, name, method, *marker in (
        ("GET", _XML_OBJECT, "objects.get", xml.get),
        ("HEAD", _XML_OBJECT, "objects.get", xml.get),
        ("GET", _XML_BUCKET, "objects.list", xml.list_all),
        ("PUT", _XML_OBJECT, "objects.insert", xml.put_part, "uploadId"),
        ("PUT", _XML_OBJECT, "objects.insert", xml.put_object),
        ("POST", _XML_OBJECT, "objects.insert", xml.begin, "uploads"),
        ("POST", _XML_OBJECT, "objects.insert", xml.complete, "uploadId"),
        ("POST", _XML_OBJECT, "objects.insert", xml.begin_session),
        # An upload's id is the authorization to cancel it, as a session's URI is.
        ("DELETE", _XML_OBJECT, "objects.cancelUpload", xml.cancel, "uploadId"),
        ("DELETE", _XML_OBJECT, "objects.delete", xml.delete),
    )
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
