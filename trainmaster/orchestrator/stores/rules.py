"""The rules, their states, and what their users see: one object each."""

import hashlib
from dataclasses import dataclass, field
from functools import partial

from trainmaster.orchestrator.core import sizes
from trainmaster.orchestrator.core.documents import codec
from trainmaster.orchestrator.core.errors import DocumentDamaged
from trainmaster.orchestrator.core.names import status_object
from trainmaster.orchestrator.core.retraining.book import BOOK_OBJECT, Book, book_bytes, parse_book
from trainmaster.orchestrator.core.retraining.rule import state_object, template_object
from trainmaster.orchestrator.core.retraining.state import RuleState, RuleStatus
from trainmaster.orchestrator.stores.store import TEXT, Store

_state, _status = partial(codec.decoded, RuleState), partial(codec.decoded, RuleStatus)


@dataclass(frozen=True, kw_only=True)
class HeldBook:
    """The rule book as it was read, and the version that a replacement must name."""

    book: Book
    version: int
    raw: object = field(default=None, repr=False, compare=False)
    """Its JSON, with what a newer release may have written."""


@dataclass(frozen=True, kw_only=True)
class HeldState:
    """A rule's state as it was read, and the version that a replacement must name. Before the first: None, 0."""

    state: RuleState | None
    version: int
    raw: object = field(default=None, repr=False, compare=False)


class RuleBook(Store):
    """Every accepted rule, in one object."""

    def read(self) -> HeldBook:
        """The book; empty before the first rule.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        book, version, raw = self._parse(BOOK_OBJECT, parse_book, sizes.MAX_BOOK_BYTES)
        return HeldBook(book=book or Book(), version=version, raw=raw)

    def replace(self, held: HeldBook, book: Book) -> None:
        """Write the changed book, if it is still at `held.version`.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        document = codec.with_unknown(codec.encoded(book), codec.encoded(held.book), held.raw)
        self.objects.write(self.bucket, BOOK_OBJECT, book_bytes(document), if_generation=held.version)

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
        """The state of a rule.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        state, version, raw = self._parse(state_object(rule_id), _state, sizes.MAX_STATE_BYTES)
        return HeldState(state=state, version=version, raw=raw)

    def replace(self, held: HeldState, state: RuleState) -> HeldState:
        """The changed state, if it is still at `held.version`.

        A write whose response was lost counts as moved: the decision is recorded, and the next attempt finds it.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        name = state_object(state.rule_id)
        document = codec.with_unknown(codec.encoded(state), codec.encoded(held.state), held.raw)
        version = self.objects.write(
            self.bucket, name, codec.json_bytes(document), if_generation=held.version
        )
        return HeldState(state=state, version=version, raw=document)


class RuleStatuses(Store):
    """What users see about their rules."""

    def find(self, dropped_name: str) -> RuleStatus | None:
        """The status of the drop with this name; None if it does not exist or cannot be read."""
        try:
            return self._parse(status_object(dropped_name), _status, sizes.MAX_STATUS_BYTES)[0]
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

        self._write_newer(status_object(status.dropped_name), change, sizes.MAX_STATUS_BYTES)
