"""Tokens: the first call of a change returns one, and the second needs it."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping

from trainmaster.client.errors import ClientRefused

LIFETIME_S = 600
CHANGES = {
    "action": "the call is for another tool",
    "context": "the context is another one",
    "content": "what would be done is not what was planned: a file, an argument or its subject has changed",
    "policy": "the deployment's policy or prices have changed",
    "cost": "the estimated cost has changed",
}
"""What a token is bound to, as texts such as digests and amounts; each with what to say if it has changed."""


class Tokens:
    """Tokens of one server, valid for LIFETIME_S seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._key, self._clock, self._used = secrets.token_bytes(32), clock, set[str]()

    def make(self, planned: Mapping[str, str]) -> str:
        """A new token, bound to the values of the keys of CHANGES in `planned`."""
        made = {**planned, "until": self._clock() + LIFETIME_S, "id": secrets.token_hex(4)}
        body = base64.urlsafe_b64encode(json.dumps(made).encode()).decode()
        return f"{body}.{self._signature(body)}"

    def check(self, token: str, planned: Mapping[str, str], *, is_repeatable: bool = False) -> None:
        """Compare what would happen now with what the token was made for, and take it as used.

        Raises:
            ClientRefused: another server made it, it has expired or was used, or what it is bound to has changed.
        """
        body, _, signature = token.partition(".")
        is_own, why = hmac.compare_digest(signature.encode(), self._signature(body).encode()), ""
        made = json.loads(base64.urlsafe_b64decode(body)) if is_own else {}
        if not is_own:
            why = "This token is not of this server, or it was changed"
        elif made["until"] < self._clock():
            why = f"This token is older than {LIFETIME_S // 60} minutes"
        elif changes := [text for key, text in CHANGES.items() if made.get(key) != planned.get(key)]:
            why = f"Since the plan, {'; '.join(changes)}"
        elif token in self._used and not is_repeatable:
            why = "This token was used before"
        if why:
            raise ClientRefused(f"{why}. Nothing was changed. Plan again, and use the new token.")
        self._used.add(token)

    def _signature(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()
