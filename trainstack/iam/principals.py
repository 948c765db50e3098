"""Principals: each replica, function and local user has its own token."""

import contextlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_KEY_BITS = 2048


class SigningKeys:
    """A key pair for each account that has signed something. None survives the stack. Thread-safe.

    Source: https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/signBlob
    """

    def __init__(self) -> None:
        self._keys: dict[str, RSAPrivateKey] = {}
        self._lock = threading.Lock()

    def sign(self, email: str, message: bytes) -> bytes:
        """The account's signature, RSA with SHA-256; its key is made when it is first needed, in a tenth of a second."""
        from cryptography.hazmat.primitives import hashes  # most stacks never sign
        from cryptography.hazmat.primitives.asymmetric import padding, rsa

        with self._lock:
            if email not in self._keys:
                self._keys[email] = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
        return self._keys[email].sign(message, padding.PKCS1v15(), hashes.SHA256())

    def is_signature(self, email: str, message: bytes, signature: bytes) -> bool:
        """Whether the account has signed the message so; RSA's signatures of a message are all alike."""
        return email in self._keys and hmac.compare_digest(self.sign(email, message), signature)


MAX_EXPIRING = 10_000
"""The default maximum number of valid tokens with a lifetime."""


EVERYONE = "allUsers"
"""The member of a policy that stands for all callers, anonymous ones among them."""


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Who a token speaks for.

    Attributes:
        kind: what it is; an `account` is a service account that a permitted caller impersonates, `anonymous` a caller without
            credentials.
        name: a job's id and a replica's name, a function's name, an account's email, or a user's name.
        email: the service account it runs as, whose grants it has; empty for the local user.
    """

    kind: Literal["replica", "function", "account", "user", "anonymous"]
    name: str
    email: str

    @property
    def member(self) -> str:
        """The member name in a policy; empty for the local user, who owns the project and needs no grant."""
        if self.kind == "anonymous":
            return EVERYONE
        return f"serviceAccount:{self.email}" if self.email else ""


LOCAL_USER = Principal(kind="user", name="local", email="")
"""The principal of requests without a token from this machine, such as those of clients with emulator
variables.
"""
ANONYMOUS = Principal(kind="anonymous", name="anonymous", email="")
"""That of requests without a token that come through the gateway, where a service has public data."""

_caller: ContextVar[Principal] = ContextVar("caller", default=LOCAL_USER)


def caller() -> Principal:
    """The principal of the current request; the local user outside of any request.

    It follows the request into its tasks and, with `asyncio.to_thread`, into threads.
    """
    return _caller.get()


@contextlib.contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Have `caller` return the principal inside the block."""
    before = _caller.set(principal)
    try:
        yield
    finally:
        _caller.reset(before)


class TooManyTokensError(Exception):
    """The maximum number of tokens with a lifetime is reached; another can be issued when the first of them expires."""


class Tokens:
    """The valid tokens, and the accounts' keys. None survives the stack. Thread-safe."""

    def __init__(self, *, max_expiring: int = MAX_EXPIRING) -> None:
        self._issued: dict[str, tuple[Principal, float]] = {}
        """By token, whose it is and when it expires."""
        self._expiring: set[str] = set()
        self._max_expiring = max_expiring
        self._lock = threading.Lock()
        self.keys = SigningKeys()

    def issue(self, principal: Principal, *, lifetime_s: float = math.inf) -> str:
        """Issue a new URL-safe token with 192 bits of entropy.

        Raises:
            TooManyTokensError: only if it has a lifetime.
        """
        token, now = secrets.token_urlsafe(24), time.monotonic()
        with self._lock:
            if lifetime_s < math.inf:
                self._make_room(now)
                self._expiring.add(token)
            self._issued[token] = principal, now + lifetime_s
        return token

    def principal_of(self, token: str) -> Principal | None:
        """The principal the token was issued to; None if it was never issued, has expired or was revoked."""
        principal, expires_at = self._issued.get(token, (None, 0.0))
        return principal if time.monotonic() < expires_at else None

    def revoke(self, token: str) -> None:
        """Invalidate the token. Safe to repeat."""
        with self._lock:
            self._remove(token)

    def _make_room(self, now: float) -> None:
        if len(self._expiring) < self._max_expiring:
            return
        for token in [key for key in self._expiring if self._issued[key][1] <= now]:
            self._remove(token)
        if len(self._expiring) >= self._max_expiring:
            raise TooManyTokensError(
                f"all {self._max_expiring} allowed tokens are in use; wait until one expires"
            )

    def _remove(self, token: str) -> None:
        self._issued.pop(token, None)
        self._expiring.discard(token)
