"""The rules, their states, and what their users see: one object each."""

import hashlib
from functools import partial

from trainmaster.orchestrator.core import sizes
from trainmaster.orchestrator.core.documents import codec
from trainmaster.orchestrator.core.errors import DocumentDamaged
from trainmaster.orchestrator.core.names import status_object
from trainmaster.orchestrator.core.retraining.book import BOOK_OBJECT, Book, book_bytes, parse_book
from trainmaster.orchestrator.core.retraining.rule import state_object, template_object
from trainmaster.orchestrator.core.retraining.state import RuleState, RuleStatus
from trainmaster.orchestrator.stores.store import TEXT, Read, Store

_state, _status = partial(codec.decoded, RuleState), partial(codec.decoded, RuleStatus)
HeldState = Read[RuleState | None]


class RuleBook(Store):
    """Every accepted rule, in one object."""

    def read(self) -> Read[Book]:
        """The book; empty before the first rule.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        found = self._parse(BOOK_OBJECT, parse_book, sizes.MAX_BOOK_BYTES)
        return Read(document=found.document or Book(), version=found.version, raw=found.raw)

    def replace(self, held: Read[Book], book: Book) -> None:
        """Write the changed book, if it is still at `held.version`. See `_replace`."""
        self._replace(BOOK_OBJECT, held, book, book_bytes)

    def keep_template(self, content: bytes) -> str:
        """Store the content of an accepted template, and return its SHA-256. Safe to repeat: it is the same object."""
        sha256 = hashlib.sha256(content).hexdigest()
        self._write_once(template_object(sha256), content, TEXT)
        return sha256

    def template(self, sha256: str) -> bytes | None:
        """The content that `keep_template` stored; None if it is gone or was changed."""
        stored = self._find_bounded(template_object(sha256), sizes.MAX_REQUEST_BYTES)
        if stored is None or hashlib.sha256(stored.content).hexdigest() != sha256:
            return None
        return stored.content


class RuleStates(Store):
    """What each rule remembers."""

    def read(self, rule_id: str) -> HeldState:
        """The state of a rule; None before the first.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        return self._parse(state_object(rule_id), _state, sizes.MAX_STATE_BYTES)

    def replace(self, held: HeldState, state: RuleState) -> HeldState:
        """The changed state, if it is still at `held.version`. See `_replace`."""
        return self._replace(state_object(state.rule_id), held, state)


class RuleStatuses(Store):
    """What users see about their rules."""

    def find(self, dropped_name: str) -> RuleStatus | None:
        """The status of the drop with this name; None if it does not exist or cannot be read."""
        try:
            return self._parse(status_object(dropped_name), _status, sizes.MAX_STATUS_BYTES).document
        except DocumentDamaged:
            return None

    def write(self, status: RuleStatus) -> None:
        """Write the status, unless a newer one exists, by generation and time. Safe to repeat."""

        def change(content: bytes) -> object | None:
            try:
                raw = codec.parse_json(content)
                present = _status(raw)
            except ValueError:
                return codec.encoded(status)  # a document that is not a status is overwritten
            if (present.generation, present.updated_at) > (status.generation, status.updated_at):
                return None
            is_same_drop = present.generation == status.generation
            return (
                codec.with_unknown(codec.encoded(status), codec.encoded(present), raw)
                if is_same_drop
                else codec.encoded(status)
            )

        self._change(status_object(status.dropped_name), change, sizes.MAX_STATUS_BYTES)
