"""Signed URLs: requests whose query has an account's signature in place of a token, of version 4 or 2.

Source: https://cloud.google.com/storage/docs/access-control/signed-urls, …/docs/authentication/canonical-requests and
…/docs/access-control/signed-urls-v2. Google's Python client signs with version 2 where a program names none.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.iam.authentication import answer_refusal
from trainstack.iam.principals import Principal, SigningKeys, acting_as
from trainstack.storage.api.routes import is_xml
from trainstack.storage.api.xml import xml_error
from trainstack.storage.objects.errors import RefusedError

_ALGORITHM = "GOOG4-RSA-SHA256"
_OWN = frozenset(
    f"x-goog-{name}" for name in ("algorithm", "credential", "date", "expires", "signedheaders", "signature")
)
_OWN_V2 = frozenset(("googleaccessid", "expires", "signature"))
_NOT_SIGNED_V2 = _OWN_V2 | {"generation", "response-content-disposition", "response-content-type"}
_KEY_HEADERS = frozenset(("x-goog-encryption-key", "x-goog-encryption-key-sha256"))
"""Not signed by version 2."""
_CREDENTIAL = re.compile(r"([^/]+)/(\d{8}/[^/]+/storage/goog4_request)")
_MAX_EXPIRES_S = 604_800
_UNSIGNED = "UNSIGNED-PAYLOAD"
_MAX_SKEW = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class SignedUrls:
    """An ASGI application: `called` for requests with a valid signature, by its signer, and `app` for those without one."""

    app: ASGIApp
    called: ASGIApp
    keys: SigningKeys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"].decode("latin-1")
        given = {}
        if "signature=" in query.lower():
            given = {name.lower(): value for name, value in parse_qsl(query)}
        try:
            if "x-goog-signature" in given:
                signer, own = _signer(scope, given, query, self.keys), _OWN
            elif "googleaccessid" in given and "signature" in given:
                signer, own = _signer_v2(scope, given, query, self.keys), _OWN_V2
            elif "x-amz-signature" in given:
                raise _refusal(400, "NotImplemented", "HMAC signatures are not imitated by the local stack.")
            else:
                await self.app(scope, receive, send)
                return
        except RefusedError as refused:
            await answer_refusal(xml_error(refused), scope, receive, send)
            return
        kept = [pair for pair in parse_qsl(query, True) if pair[0].lower() not in own]
        with acting_as(signer):
            await self.called({**scope, "query_string": urlencode(kept).encode()}, receive, send)


def _signer(scope: Scope, given: Mapping[str, str], query: str, keys: SigningKeys) -> Principal:
    """The account that signed the request.

    Raises:
        RefusedError: 400 for a query without a valid signature or has expired, 403 for a forged one.
    """
    if not is_xml(scope):
        raise _refusal(400, "InvalidArgument", "Signed URLs are of the XML API: /BUCKET/OBJECT.")
    if given.get("x-goog-algorithm", _ALGORITHM) != _ALGORITHM:
        raise _refusal(
            400, "NotImplemented", f"Only {_ALGORITHM} is imitated by the local stack, no HMAC keys."
        )
    credential = _CREDENTIAL.fullmatch(given.get("x-goog-credential", ""))
    date, expires = given.get("x-goog-date", ""), given.get("x-goog-expires", "")
    try:
        begins = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        lifetime_s, signature = int(expires), bytes.fromhex(given["x-goog-signature"])
    except ValueError:
        begins, lifetime_s, signature = datetime.min.replace(tzinfo=UTC), 0, b""
    if credential is None or not credential[2].startswith(date[:8]) or not 0 < lifetime_s <= _MAX_EXPIRES_S:
        raise _refusal(400, "MalformedSecurityHeader", "The signed URL's query is malformed.")
    ends = begins + timedelta(seconds=lifetime_s)
    if not begins - _MAX_SKEW <= datetime.now(UTC) <= ends:
        raise _expiry_refusal(ends)
    request = _canonical_request(scope, given.get("x-goog-signedheaders", ""), query)
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join((_ALGORITHM, date, credential[2], digest))
    if not keys.is_signature(credential[1], text.encode(), signature):
        raise _mismatch(request)
    return Principal(kind="account", name=credential[1], email=credential[1])


def _signer_v2(scope: Scope, given: Mapping[str, str], query: str, keys: SigningKeys) -> Principal:
    """Raises as `_signer`."""
    try:
        ends = datetime.fromtimestamp(int(given["expires"]), UTC)
        signature = base64.b64decode(given["signature"], validate=True)
    except (KeyError, ValueError, OverflowError, OSError):
        raise _refusal(400, "MalformedSecurityHeader", "The signed URL's query is malformed.") from None
    if datetime.now(UTC) > ends:
        raise _expiry_refusal(ends)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    names = sorted(name for name in headers if name.startswith("x-goog-") and name not in _KEY_HEADERS)
    lines = [
        scope["method"],
        headers.get("content-md5", ""),
        headers.get("content-type", ""),
        given["expires"],
    ]
    lines += [f"{name}:{headers[name]}" for name in names]
    pairs = sorted(pair for pair in parse_qsl(query, True) if pair[0].lower() not in _NOT_SIGNED_V2)
    # Clients sign further parameters or leave them out.
    texts = ["\n".join((*lines, f"{_path(scope)}{more}")) for more in ("", f"?{urlencode(pairs)}")]
    email = given["googleaccessid"]
    if not any(keys.is_signature(email, text.encode(), signature) for text in texts):
        raise _mismatch(texts[0])
    return Principal(kind="account", name=email, email=email)


def _path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("ascii", errors="replace")


def _canonical_request(scope: Scope, signed_headers: str, query: str) -> str:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(" ".join(value.decode("latin-1").split()))
    names = signed_headers.split(";")
    payload = ",".join(headers.get("x-goog-content-sha256", [_UNSIGNED]))
    if "host" not in names or payload != _UNSIGNED:
        raise _refusal(
            400, "MalformedSecurityHeader", "Expected a signed host, and a payload that is not signed."
        )
    pairs = [(quote(name, safe="~"), quote(value, safe="~")) for name, value in parse_qsl(query, True)]
    kept = sorted(f"{name}={value}" for name, value in pairs if name.lower() != "x-goog-signature")
    lines = [f"{name}:{','.join(headers.get(name, ()))}" for name in names]
    return "\n".join((scope["method"], _path(scope), "&".join(kept), *lines, "", signed_headers, payload))


def _expiry_refusal(ends: datetime) -> RefusedError:
    message = f"The provided token has expired. Request signature expired at: {ends}"
    return _refusal(400, "ExpiredToken", message)


def _mismatch(signed: str) -> RefusedError:
    message = (
        "Access denied: the request signature we calculated does not match the signature you provided. "
        f"The local stack knows only the keys of its own accounts. Text to sign: {signed!r}"
    )
    return _refusal(403, "SignatureDoesNotMatch", message)


def _refusal(code: int, xml_code: str, message: str) -> RefusedError:
    return RefusedError(code, "invalid", message, xml_code=xml_code)
