"""A stand-in for Identity-Aware Proxy in front of one local application: it signs who sends each request.

Its assertions have the claims of the real ones, and its public keys the real form. It asks for no sign-in: it sends every request
in the name of one person.
Source: https://docs.cloud.google.com/iap/docs/signed-headers-howto (read 2026-11-27)
"""

import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ASSERTION = "x-goog-iap-jwt-assertion"
ISSUER = "https://cloud.google.com/iap"
LOCAL_AUDIENCE = "/projects/0/locations/local/services/console"
KEYS_PATH = "/iap/verify/public_key"
"""Where the stand-in serves its keys, as www.gstatic.com serves the real ones."""
LIFETIME_S = 600


class IapSigner:
    """Makes assertions with its own key."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self.key: EllipticCurvePrivateKey = ec.generate_private_key(ec.SECP256R1())
        self.key_id = uuid.uuid4().hex[:6]

    @property
    def public_keys(self) -> Mapping[str, str]:
        """The public key in PEM, by its id."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        pem = self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return {self.key_id: pem.decode()}

    def claims(self, person: str, audience: str) -> dict[str, Any]:  # Any: a JSON object
        """The claims of a valid assertion: `hd` is the address's domain, as of a person of that Workspace domain."""
        now = int(time.time())
        return {
            "iss": ISSUER,
            "aud": audience,
            "sub": f"accounts.google.com:{uuid.uuid5(uuid.NAMESPACE_URL, person).int % 10**20}",
            "email": person,
            "hd": person.rpartition("@")[2],
            "iat": now,
            "exp": now + LIFETIME_S,
        }

    def assertion(self, claims: Mapping[str, Any]) -> str:
        """The claims with a signature, ES256."""
        from google.auth import jwt
        from google.auth.crypt.es import EsSigner

        signed: bytes = jwt.encode(EsSigner(self.key, self.key_id), claims)
        return signed.decode()


class IapStandIn:
    """The application behind the stand-in: headers `x-goog-…` of the client never reach it, as with the real one."""

    def __init__(self, app: ASGIApp, *, person: str, audience: str = LOCAL_AUDIENCE) -> None:
        self._app, self._signer = app, IapSigner()
        self._person, self._audience = person, audience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == KEYS_PATH:
            await JSONResponse(dict(self._signer.public_keys))(scope, receive, send)
        else:
            assertion = self._signer.assertion(self._signer.claims(self._person, self._audience))
            kept = [each for each in scope["headers"] if not each[0].startswith(b"x-goog-")]
            headers = [*kept, (ASSERTION.encode(), assertion.encode())]
            await self._app({**scope, "headers": headers}, receive, send)
