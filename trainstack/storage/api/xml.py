"""The XML API, as far as other people's clients use it: polars and object_store, TensorFlow, `transfer_manager`, signed URLs.

Each method becomes a call of the JSON API's, whose parameters carry what the XML API has in headers. Sources:
https://cloud.google.com/storage/docs/xml-api/overview and its reference; object_store's src/gcp/client.rs.
"""

import base64
import dataclasses
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from html import escape, unescape
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from trainstack.json_bodies import read_body
from trainstack.storage.api import objects, uploads
from trainstack.storage.api.call import Call, Json
from trainstack.storage.api.insertion import check_hashes, insertion_of, put
from trainstack.storage.api.media import DESCRIBED, headers_of
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.preconditions import Insertion, whole_number
from trainstack.storage.objects.records import ObjectRecord
from trainstack.storage.objects.staging import Staged
from trainstack.storage.service import Upload

MAX_PARTS = 10_000
MIN_PART_BYTES = 5 << 20
"""Of each part but the last: https://cloud.google.com/storage/quotas#requests"""
_MAX_COMPLETION_BYTES = 4 << 20
_CODES = {
    401: "AuthenticationRequired", 403: "AccessDenied", 404: "NoSuchKey", 405: "MethodNotAllowed", 409: "Conflict",
    412: "PreconditionFailed", 416: "InvalidRange", 501: "NotImplemented", 503: "ServiceUnavailable",
}  # fmt: skip
"""Source: https://cloud.google.com/storage/docs/xml-api/reference-status"""
_SHARED = ("delimiter", "generation", "prefix")
"""Parameters of both APIs."""
_CONDITIONS = {
    "x-goog-if-generation-match": "ifGenerationMatch",
    "x-goog-if-metageneration-match": "ifMetagenerationMatch",
}
_FIELDS = {**DESCRIBED, "x-goog-custom-time": "customTime", "x-goog-storage-class": "storageClass"}
_META = "x-goog-meta-"
_REFUSED_HEADER = re.compile(r"x-goog-(?:copy-source$|content-length-range|object-lock|metadata-directive)")
_RESPONSE_HEADERS = {
    "response-content-type": "content-type",
    "response-content-disposition": "content-disposition",
}
_CONTENTS = {
    "Key": "name", "Generation": "generation", "MetaGeneration": "metageneration", "LastModified": "updated",
    "Size": "size", "StorageClass": "storageClass",
}  # fmt: skip
_NUMBER = re.compile(r"<PartNumber>\s*(\d{1,5})\s*</PartNumber>")
_ETAG = re.compile(r"<ETag>([^<]*)</ETag>")


def xml_error(refused: RefusedError) -> Response:
    """The XML API's error body."""
    code = refused.xml_code or _CODES.get(refused.code, "InvalidArgument")
    described = {"Code": code, "Message": refused.message, "Details": refused.message}
    # The JSON API's 401 of an anonymous caller
    answer = _document({"Error": described}, code=403 if code == "AccessDenied" else refused.code)
    answer.headers.update(refused.headers)
    return answer


def not_served(verb: str, what: str) -> RefusedError:
    message = (
        f"The XML API's {verb} of {what} is not imitated by the local stack; use the JSON API for it, as "
        "Google's client libraries do."
    )
    return RefusedError(400, "invalid", message, xml_code="NotImplemented")


async def get(call: Call) -> Response:
    """An object's bytes. The query may replace two of the answer's headers."""
    answer = await objects.download(_json_call(call, "objects.get", "generation", *_RESPONSE_HEADERS))
    answer.headers["etag"] = _quote_etag(answer.headers["etag"])
    for name, header in _RESPONSE_HEADERS.items():
        if value := call.query.get(name):
            answer.headers[header] = re.sub(r"[^\x20-\xff]", " ", value)
    return answer


async def list_all(call: Call) -> Response:
    """A page of the bucket's objects, by version 1 or 2 of the method."""
    after = call.query.get("start-after") or call.query.get("marker")
    if after:  # names that follow; after a common prefix, none that begin with it
        is_prefix = after.endswith(call.query.get("delimiter") or "\0")
        after += chr(sys.maxunicode) if is_prefix else "\0"
    page = await objects.list_all(
        _json_call(
            call,
            "objects.list",
            *("list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after", "marker"),
            maxResults=call.query.get("max-keys"),
            pageToken=call.query.get("continuation-token"),
            startOffset=after,
        )
    )
    return _document({"ListBucketResult": _listing(call, json.loads(bytes(page.body)))})


async def put_object(call: Call) -> Response:
    """Create an object from the body."""
    insertion = _insertion(call)
    with Staged(call.store.uploads_path) as staged:
        await _receive(call, staged)
        return Response(headers=_headers_of(await put(call, staged, insertion)))


async def delete(call: Call) -> Response:
    return await objects.delete(_json_call(call, "objects.delete", "generation"))


async def begin_session(call: Call) -> Response:
    """Begin a resumable upload, which continues at the JSON API's address."""
    if call.request.headers.get("x-goog-resumable") != "start":
        raise not_served("POST", call.request.url.path)
    inserting = _json_call(call, "objects.insert", name=call.path["object"])
    answer = await uploads.begin(inserting, _metadata(call))
    answer.status_code = 201
    return answer


async def begin(call: Call) -> Response:
    """Begin a multipart upload."""
    upload_id = call.service.uploads.begin(_insertion(call, "uploads"))
    return _document_of_object("InitiateMultipartUploadResult", call, UploadId=upload_id)


async def put_part(call: Call) -> Response:
    """Keep a part, in place of an earlier one of the same number."""
    _json_call(call, "objects.insert", "uploadId", "partNumber")
    number = whole_number(call.query, "partNumber") or 0
    if not 1 <= number <= MAX_PARTS:
        raise _invalid("InvalidArgument", f"partNumber: expected 1 to {MAX_PARTS}.")
    _upload(call)
    part = Staged(call.store.uploads_path)
    try:
        await _receive(call, part)
        upload = _upload(call)  # it may have ended meanwhile
    except BaseException:
        part.discard()
        raise
    part.close()
    if before := upload.parts.pop(number, None):
        before.discard()
    upload.parts[number] = part
    digest = part.digest
    return Response(headers={"etag": _etag(part), "x-goog-hash": f"crc32c={digest.crc32c},md5={digest.md5}"})


async def complete(call: Call) -> Response:
    """Create the object from the parts that the body lists. It has a CRC32C but no MD5."""
    _json_call(call, "objects.insert", "uploadId")
    upload = _upload(call)
    try:
        body = await read_body(call.request, most_bytes=_MAX_COMPLETION_BYTES)
    except ValueError as fault:
        raise _invalid("MalformedCompleteMultipartUploadRequest", f"{fault}.") from None
    async with upload.lock:
        if not upload.result:
            parts = _listed_parts(upload, body.decode(errors="replace"))
            await call.service.threads.run(call.path["bucket"], _join, upload, parts)
            upload.result = await put(call, upload.staged, upload.insertion, composite=True)
            upload.discard_parts()
    headers = _headers_of(upload.result)
    answer = _document_of_object("CompleteMultipartUploadResult", call, ETag=headers["etag"])
    answer.headers.update(headers)
    return answer


async def cancel(call: Call) -> Response:
    """Discard a multipart upload and its parts."""
    _json_call(call, "objects.cancelUpload", "uploadId")
    async with _upload(call).lock:
        call.service.uploads.cancel(call.query["uploadId"])
    return Response(status_code=204)


def _json_call(call: Call, method: str, *parameters: str, **translated: str | None) -> Call:
    """The call of the JSON API's method, with the headers' conditions; `parameters` are the XML API's that are honoured.

    Those of the same name in both are kept, and `translated` added.

    Raises:
        RefusedError: 400 for a parameter or header that is not honoured.
    """
    headers, given = call.request.headers, call.query
    refused = [name for name in given if name not in parameters]
    if call.request.method not in {"GET", "HEAD"}:
        refused += filter(_REFUSED_HEADER.match, headers)
    if refused:
        raise not_served(call.request.method, f"{call.request.url.path} with {', '.join(refused)[:200]}")
    conditions = {name: headers.get(header) for header, name in _CONDITIONS.items()}
    query = {name: given.get(name) for name in _SHARED} | translated | conditions
    text = urlencode({name: value for name, value in query.items() if value is not None})
    scope = {**call.request.scope, "query_string": text.encode()}
    called = dataclasses.replace(call, request=Request(scope, call.request.receive))
    called.check(method)
    return called


async def _receive(call: Call, staged: Staged) -> None:
    """Write the body, and compare it with the hashes of the headers."""
    async for chunk in call.request.stream():
        staged.write(chunk)
    check_hashes(call, staged, md5Hash=call.request.headers.get("content-md5", ""))


def _insertion(call: Call, *parameters: str) -> Insertion:
    inserting = _json_call(call, "objects.insert", *parameters, name=call.path["object"])
    return insertion_of(inserting, _metadata(call), "")


def _metadata(call: Call) -> Json:
    """The fields of an object that the headers describe."""
    headers = call.request.headers
    fields: Json = {key: headers[name] for name, key in _FIELDS.items() if name in headers}
    if content_type := headers.get("content-type"):
        fields["contentType"] = content_type
    if custom := {key.removeprefix(_META): headers[key] for key in headers if key.startswith(_META)}:
        fields["metadata"] = custom
    return fields


def _headers_of(stored: ObjectRecord) -> dict[str, str]:
    headers = headers_of(stored)
    return headers | {"etag": _quote_etag(headers["etag"])}


def _upload(call: Call) -> Upload:
    try:
        upload = call.service.uploads.find(call.query["uploadId"], bucket=call.path["bucket"])
    except RefusedError as refused:
        raise RefusedError(404, refused.reason, refused.message, xml_code="NoSuchUpload") from None
    if upload.insertion.name != call.path["object"]:
        raise _invalid("InvalidArgument", f"This upload is of {upload.insertion.name!r}.")
    return upload


def _listed_parts(upload: Upload, body: str) -> list[Staged]:
    """The parts of a completion, in its order. Raises `RefusedError` (400) unless they make an object."""
    texts = [text.partition("</Part>")[0] for text in body.split("<Part>", MAX_PARTS + 1)[1:]]
    listed = [(_NUMBER.search(text), _ETAG.search(text)) for text in texts]
    numbers = [int(number[1]) for number, _ in listed if number]
    if not listed or len(numbers) < len(listed):
        raise _invalid(
            "MalformedCompleteMultipartUploadRequest", "Expected a list of parts with their numbers."
        )
    if any(one >= next_one for one, next_one in itertools.pairwise(numbers)):
        raise _invalid("InvalidPartOrder", "The parts are not in ascending order.")
    for number, (_, etag) in zip(numbers, listed, strict=True):
        part = upload.parts.get(number)
        if part is None or etag is None or _quote_etag(unescape(etag[1]).strip()) != _etag(part):
            raise _invalid("InvalidPart", f"Part {number} was not uploaded, or its ETag differs.")
    parts = [upload.parts[number] for number in numbers]
    if any(part.size < MIN_PART_BYTES for part in parts[:-1]):
        raise _invalid("EntityTooSmall", f"Each part but the last has at least {MIN_PART_BYTES} bytes.")
    return parts


def _join(upload: Upload, parts: Iterable[Staged]) -> None:
    """Write the parts into the upload's file, which is begun anew if an earlier completion failed."""
    upload.staged.clear()
    for part in parts:
        upload.staged.append(os.open(part.path, os.O_RDONLY))


def _etag(part: Staged) -> str:
    return _quote_etag(base64.b64decode(part.digest.md5).hex())


def _quote_etag(etag: str) -> str:
    """As the XML API writes it, unlike the JSON API."""
    return '"{}"'.format(etag.strip('"'))


def _invalid(code: str, message: str) -> RefusedError:
    return RefusedError(400, "invalid", message, xml_code=code)


# Any: a page of the JSON API, which this emulator wrote.
def _listing(call: Call, page: Mapping[str, Any]) -> Json:
    contents = [
        {
            **{element: item[field] for element, field in _CONTENTS.items()},
            "ETag": _quote_etag(item["etag"]),
        }
        for item in page.get("items", ())
    ]
    prefixes, token = page.get("prefixes", []), page.get("nextPageToken")
    names = [*(item["Key"] for item in contents), *prefixes]
    is_second = call.query.get("list-type") == "2"
    following = {"NextContinuationToken": token} if is_second else {"NextMarker": max(names, default="")}
    return {
        "Name": call.path["bucket"],
        "Prefix": call.query.get("prefix", ""),
        "KeyCount": len(names),
        "IsTruncated": "true" if token else "false",
        **(following if token else {}),
        "Contents": contents,
        "CommonPrefixes": [{"Prefix": prefix} for prefix in prefixes],
    }


def _document_of_object(root: str, call: Call, **more: str) -> Response:
    named: Json = {"Bucket": call.path["bucket"], "Key": call.path["object"], **more}
    return _document({root: named}, namespace="http://s3.amazonaws.com/doc/2006-03-01/")


def _document(tree: Json, *, namespace: str = "", code: int = 200) -> Response:
    ((root, children),) = tree.items()
    body = _element(root, children, f' xmlns="{namespace}"' if namespace else "")
    return Response(
        f'<?xml version="1.0" encoding="UTF-8"?>{body}', code, media_type="application/xml; charset=UTF-8"
    )


def _element(name: str, value: object, attributes: str = "") -> str:
    match value:
        case dict():
            inner = "".join(_element(key, child) for key, child in value.items())
        case list():
            return "".join(_element(name, item) for item in value)
        case _:
            inner = escape(str(value), quote=False)
    return f"<{name}{attributes}>{inner}</{name}>"
