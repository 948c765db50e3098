"""The door for a team: Identity-Aware Proxy signs who sent each request, and nothing is answered without its signature.

Source: https://docs.cloud.google.com/iap/docs/signed-headers-howto (read 2026-11-27)
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp

ASSERTION, ASSERTION_MAX_CHARS = "x-goog-iap-jwt-assertion", 16 * 1024
ALGORITHM, ISSUER, SKEW_S = "ES256", "https://cloud.google.com/iap", 30
KEYS_VARIABLE = "TRAINMASTER_IAP_KEYS_URL"
KEYS_URL = "https://www.gstatic.com/iap/verify/public_key"
KEYS_KEPT_S, KEYS_PAUSE_S, KEYS_WITHIN_S, KEYS_MAX_BYTES = 3600.0, 10.0, 5.0, 64 * 1024
"""How long keys are kept, the time between two reads of them, how long one may pause, and how large they may be."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """Who sent a request, as Identity-Aware Proxy says: the address, and the Workspace domain, or empty."""

    email: str
    domain: str = ""


class NotSignedIn(Exception):
    """The request has no valid assertion, or with `status` 503 its key cannot be read; the message says why."""

    def __init__(self, reason: str, status: int = 401) -> None:
        super().__init__(
            f"Open this console through Identity-Aware Proxy, which signs each request: {reason}."
        )
        self.status = status


class IapDoor:
    """Knows who sent a request to this service. Safe for threads."""

    def __init__(
        self,
        audience: str,
        keys_url: str | None = None,
        *,
        in_front: Callable[[ASGIApp], ASGIApp] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The door of one service.

        Args:
            audience: the service's own: `/projects/NUMBER/locations/REGION/services/NAME` on Cloud Run.
            keys_url: of public keys in PEM by their ids, a JSON object; None: that of KEYS_VARIABLE, or Google's.
            in_front: wraps the application in a stand-in for Identity-Aware Proxy.
            clock: seconds, by which keys age.
        """
        self._audience, self._clock = audience, clock
        self._keys_url = keys_url or os.environ.get(KEYS_VARIABLE) or KEYS_URL
        self.in_front = in_front
        self._keys: Mapping[str, str] = {}
        self._read_at = self._tried_at = float("-inf")
        self._lock = threading.Lock()

    def person_of(self, assertions: Sequence[str]) -> Person:
        """The person that the assertion names; `assertions` are the values of every header ASSERTION of the request.

        Raises:
            NotSignedIn: there is not exactly one, or it is not Identity-Aware Proxy's, of now, for this service.
        """
        if len(assertions) != 1 or len(assertions[0]) > ASSERTION_MAX_CHARS:
            raise NotSignedIn(f"expected one header {ASSERTION}, found {len(assertions)}")
        claims = self._claims(assertions[0])
        for name, expected in (("iss", ISSUER), ("aud", self._audience)):
            if claims.get(name) != expected:
                raise NotSignedIn(f"{name}: expected {expected!r}, found {str(claims.get(name))[:200]!r}")
        email, domain = claims.get("email"), claims.get("hd", "")
        if not isinstance(email, str) or "@" not in email or not isinstance(domain, str):
            raise NotSignedIn("email: expected an address, found none")
        return Person(email=email.lower(), domain=domain.lower())

    def _claims(self, assertion: str) -> Mapping[str, object]:
        """The claims, once signature and times are verified."""
        from google.auth import jwt
        from google.auth.exceptions import GoogleAuthError

        try:
            header = jwt.decode_header(assertion)
            algorithm, key_id = header.get("alg"), header.get("kid")
            if algorithm != ALGORITHM:
                raise NotSignedIn(f"alg: expected {ALGORITHM}, found {str(algorithm)[:20]!r}")
            key = self._key(key_id) if isinstance(key_id, str) else None
            if key is None:
                raise NotSignedIn(f"kid: {str(key_id)[:40]!r} is none of its keys")
            claims: Mapping[str, object] = jwt.decode(assertion, certs=key, clock_skew_in_seconds=SKEW_S)
        except (GoogleAuthError, ValueError, TypeError, RecursionError) as error:
            raise NotSignedIn("the assertion is malformed, has expired, or its signature is wrong") from error
        return claims

    def _key(self, key_id: str) -> str | None:
        """The key in PEM; None for an id without a key."""
        with self._lock:
            now = self._clock()
            is_wanted = now - self._read_at > KEYS_KEPT_S or key_id not in self._keys
            if is_wanted and now - self._tried_at > KEYS_PAUSE_S:
                self._tried_at = now
                self._keys, self._read_at = _read_keys(self._keys_url), now
            if now - self._read_at > KEYS_KEPT_S:
                raise NotSignedIn(f"its keys cannot be read from {self._keys_url}", status=503)
            return self._keys.get(key_id)


def _read_keys(url: str) -> dict[str, str]:
    import requests
    from urllib3.exceptions import HTTPError

    try:
        with requests.get(url, timeout=KEYS_WITHIN_S, stream=True) as answer:
            answer.raise_for_status()
            content = answer.raw.read(KEYS_MAX_BYTES + 1, decode_content=True)
        found = json.loads(content) if len(content) <= KEYS_MAX_BYTES else None
    except (requests.RequestException, HTTPError, ValueError, RecursionError) as error:
        raise NotSignedIn(f"its keys cannot be read from {url}", status=503) from error
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise NotSignedIn(f"{url} has no keys, a JSON object of {KEYS_MAX_BYTES} bytes at most", status=503)
    return found
