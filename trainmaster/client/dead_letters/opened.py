"""The dead letters of a project, claimed while they are read, each with the reason why it failed."""

from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from trainmaster.client.clients import Clients
from trainmaster.client.dead_letters.letter import Letter, NoSourceError, event_key
from trainmaster.client.dead_letters.mailbox import AT_MOST, Mailbox
from trainmaster.client.dead_letters.reasons import FunctionLine, Reasons
from trainmaster.client.errors import NotFound
from trainmaster.client.records import Encoded
from trainmaster.orchestrator.core.names import object_uri

DEAD_LETTERS_SCHEMA = "dead_letters.v1"
PAYLOAD_MAX_BYTES = 4096
"""Of a payload in the document."""


@dataclass(frozen=True, kw_only=True)
class OpenedLetters:
    """The selected dead letters of a project, which no other client sees until they are released.

    Attributes:
        failures: why each failed, by event key.
        unknown: ids that are not dead letters.
        read: how many letters there were.
        may_be_more: not all were read.
    """

    mailbox: Mailbox
    reasons: Reasons
    chosen: Sequence[Letter]
    failures: Mapping[str, FunctionLine]
    unknown: Sequence[str]
    read: int
    may_be_more: bool

    @property
    def listed(self) -> "LetterList":
        letters = tuple(
            _listed_letter(letter, self.failures.get(event_key(letter))) for letter in self.chosen
        )
        return LetterList(letters=letters, may_be_more=self.may_be_more)


@dataclass(frozen=True, kw_only=True)
class ListedLetter:
    """A dead letter as it is shown; what is unknown is None.

    Attributes:
        subscription: the id of the one that gave it up.
        not_replayable: why it cannot be replayed.
        deliveries: about how often it was delivered.
        reason: the last failure in the functions' log.
        attributes: those that the event had when it was published.
        size_bytes: of the whole payload.
        text, hex: the beginning of the payload, as text or, if it is none, in hexadecimal.
    """

    id: str
    subscription: str | None
    not_replayable: str | None
    object_uri: str | None
    object_generation: str | None
    published_at: datetime
    given_up_at: datetime
    deliveries: int | None
    reason: str | None
    run_id: str | None
    attributes: Mapping[str, str]
    size_bytes: int
    text: str | None
    hex: str | None


@dataclass(frozen=True, kw_only=True)
class LetterList(Encoded):
    """Dead letters, the oldest first: schemas/dead_letters.v1.schema.json."""

    schema: str = DEAD_LETTERS_SCHEMA
    letters: tuple[ListedLetter, ...]
    may_be_more: bool


@contextmanager
def open_letters(clients: Clients, ids: Sequence[str] = ()) -> Iterator[OpenedLetters]:
    """The letters with these ids, or without any all, the oldest first; they are released when the block ends.

    Takes a few seconds, during which others find the letters missing.

    Raises:
        NotFound: there is no such subscription.
        google.api_core.exceptions.GoogleAPICallError: Pub/Sub or the log cannot be read.
    """
    from google.api_core.exceptions import NotFound as NoSubscription

    subscription_id = f"trainmaster-{clients.context.prefix}dead-letters"
    mailbox, reasons = Mailbox(clients, subscription_id), Reasons(clients.logs, clients.context.project)
    try:
        with mailbox.letters() as letters:
            yield _opened_selection(ids, mailbox, letters, reasons)
    except NoSubscription as fault:
        raise NotFound(
            f"{fault.message}\nThe dead letters are kept by the subscription {subscription_id!r} of the topology: "
            "deploy it."
        ) from fault


def list_letters(clients: Clients) -> LetterList:
    """All letters, no longer claimed. Errors are those of `open_letters`."""
    with open_letters(clients) as opened:
        return opened.listed


def _opened_selection(
    ids: Sequence[str], mailbox: Mailbox, letters: Sequence[Letter], reasons: Reasons
) -> OpenedLetters:
    chosen = [letter for letter in letters if not ids or letter.id in ids]
    keys = [event_key(letter) for letter in chosen]
    since = min((letter.failed_since for letter in chosen), default=None)
    return OpenedLetters(
        mailbox=mailbox,
        reasons=reasons,
        chosen=chosen,
        failures={} if since is None else reasons.failures(keys, since),
        unknown=sorted(set(ids) - {letter.id for letter in letters}),
        read=len(letters),
        may_be_more=len(letters) >= AT_MOST,
    )


def _listed_letter(letter: Letter, failure: FunctionLine | None) -> ListedLetter:
    subscription, refusal = None, None
    try:
        subscription = letter.subscription_name.rpartition("/")[2]
    except NoSourceError as fault:
        refusal = str(fault)
    bucket, name, generation = letter.object or (None, "", None)
    text, as_hex = _payload_of(letter.data)
    return ListedLetter(
        id=letter.id,
        subscription=subscription,
        not_replayable=refusal,
        object_uri=object_uri(bucket, name) if bucket else None,
        object_generation=generation,
        published_at=letter.published_at,
        given_up_at=letter.given_up_at,
        deliveries=letter.deliveries,
        reason=failure.text if failure else None,
        run_id=failure.run_id or None if failure else None,
        attributes=letter.own_attributes,
        size_bytes=len(letter.data),
        text=text,
        hex=as_hex,
    )


def _payload_of(data: bytes) -> tuple[str | None, str | None]:
    """The first PAYLOAD_MAX_BYTES, as text if they are UTF-8, else in hexadecimal; the other is None."""
    cut = data[:PAYLOAD_MAX_BYTES]
    try:
        is_whole = len(data) <= PAYLOAD_MAX_BYTES  # the cut may be within a character
        return getincrementaldecoder("utf-8")().decode(cut, final=is_whole), None
    except UnicodeDecodeError:
        return None, cut.hex(" ")
