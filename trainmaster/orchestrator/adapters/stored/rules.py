"""The rule book, the rules' states and their statuses over any object store: one object each."""

import json
from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.adapters.objects import Objects, json_bytes
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.errors import DocumentDamaged, GenerationMoved, ObjectGone
from trainmaster.orchestrator.core.names import object_uri, status_object
from trainmaster.orchestrator.core.retraining.rules.book import Book, book_in
from trainmaster.orchestrator.core.retraining.rules.names import BOOK_OBJECT, state_object
from trainmaster.orchestrator.core.retraining.state import RuleState, state_in
from trainmaster.orchestrator.core.retraining.status import RuleStatus
from trainmaster.orchestrator.ports.rules import HeldBook, HeldState

STATUS_RACES_MAX = 10


@dataclass(frozen=True)
class StoredBook:
    """See `trainmaster.orchestrator.ports.rules.RuleBook`."""

    objects: Objects
    bucket: str

    def read(self) -> HeldBook:
        try:
            stored = self.objects.read(self.bucket, BOOK_OBJECT)
        except ObjectGone:
            return HeldBook(book=Book(), version=0)
        try:
            return HeldBook(book=book_in(json.loads(stored.content)), version=stored.generation)
        except ValueError as error:
            raise DocumentDamaged(object_uri(self.bucket, BOOK_OBJECT), str(error)) from error

    def replace(self, held: HeldBook, book: Book) -> HeldBook:
        content = json_bytes(book.document)
        version = self.objects.write(self.bucket, BOOK_OBJECT, content, if_generation=held.version)
        return HeldBook(book=book, version=version)


@dataclass(frozen=True)
class StoredRuleStates:
    """See `trainmaster.orchestrator.ports.rules.RuleStates`."""

    objects: Objects
    bucket: str

    def read(self, rule_id: str) -> HeldState:
        name = state_object(rule_id)
        try:
            stored = self.objects.read(self.bucket, name)
        except ObjectGone:
            return HeldState(state=None, version=0)
        try:
            return HeldState(state=state_in(json.loads(stored.content)), version=stored.generation)
        except ValueError as error:
            raise DocumentDamaged(object_uri(self.bucket, name), str(error)) from error

    def replace(self, held: HeldState, state: RuleState) -> HeldState:
        content = json_bytes(state.document)
        name = state_object(state.rule_id)
        version = self.objects.write(self.bucket, name, content, if_generation=held.version)
        return HeldState(state=state, version=version)


@dataclass(frozen=True)
class StoredRuleStatuses:
    """See `trainmaster.orchestrator.ports.rules.RuleStatuses`."""

    objects: Objects
    bucket: str

    def find(self, dropped_name: str) -> RuleStatus | None:
        found, _ = self._found(dropped_name)
        return found

    def tell(self, status: RuleStatus) -> None:
        name = status_object(status.dropped_name)
        content = json_bytes(encoded(status))
        for _ in range(STATUS_RACES_MAX):
            present, version = self._found(status.dropped_name)
            if present is not None and _place(present) > _place(status):
                return
            try:
                self.objects.write(self.bucket, name, content, if_generation=version)
            except GenerationMoved:
                continue
            return
        raise GenerationMoved(object_uri(self.bucket, name), 0)

    def _found(self, dropped_name: str) -> tuple[RuleStatus | None, int]:
        try:
            stored = self.objects.read(self.bucket, status_object(dropped_name))
        except ObjectGone:
            return None, 0
        try:
            return decoded(RuleStatus, json.loads(stored.content)), stored.generation
        except ValueError:
            return None, stored.generation  # whatever is no status gives way to one


def _place(status: RuleStatus) -> tuple[int, datetime]:
    return status.generation, status.updated_at
