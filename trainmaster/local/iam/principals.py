"""Who a request comes from: each replica, function and local user has a token of its own."""

import secrets
import threading
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Who a token speaks for.

    Attributes:
        kind: what it is.
        name: which one: a job's id and a replica's name, a function's name, a user's.
        email: the service account it runs as, whose grants hold for it.
    """

    kind: Literal["replica", "function", "user"]
    name: str
    email: str


class Tokens:
    """The tokens that are good now. They live as long as the stack, like the replicas that hold them. Thread-safe."""

    def __init__(self) -> None:
        self._principals: dict[str, Principal] = {}
        self._lock = threading.Lock()

    def issue(self, principal: Principal) -> str:
        """A new token; it is as hard to guess as a key of 192 bits, and fit for a URL."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._principals[token] = principal
        return token

    def principal_of(self, token: str) -> Principal | None:
        """The principal the token was issued to; None if it was never issued, or was revoked."""
        return self._principals.get(token)

    def revoke(self, token: str) -> None:
        """Make the token good for nothing. Safe to repeat."""
        with self._lock:
            self._principals.pop(token, None)
