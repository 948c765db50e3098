"""Replays letters, once each, and watches the outcome.

A letter is published again before it is acknowledged, which may repeat it and never loses it. It carries its
former id and publish time, because the id of a message names its run.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from google.api_core.exceptions import GoogleAPICallError, RetryError

from trainmaster.client.dead_letters.letter import (
    CLOCKS_APART,
    Letter,
    NoSourceError,
    attributes_to_put_back,
    event_key,
)
from trainmaster.client.dead_letters.mailbox import Mailbox, SourceGoneError
from trainmaster.client.dead_letters.reasons import PER_QUERY, FunctionLine, Reasons

_LOOK_EVERY_S = 2.0
"""Per query: Cloud Logging allows 60 per minute and project."""


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The outcome of one letter.

    Attributes:
        letter_id: its id as a dead letter.
        well: it was put back and removed, and is not known to have failed again.
        text: the same for people.
        run_id: of the run that the event is about, if the function named one.
    """

    letter_id: str
    well: bool
    text: str
    run_id: str = ""


class Replay:
    """One replay. Each letter is published first and removed afterwards.

    After a crash between the two, the next replay publishes it again. The event is then delivered twice, as any event may
    be: it keeps its identity, so the functions recognize it.
    """

    def __init__(self, *, mailbox: Mailbox, reasons: Reasons, wait_s: float) -> None:
        self._mailbox = mailbox
        self._reasons = reasons
        self._wait_s = wait_s
        self.problem = ""
        """Why the log does not show the outcome of the letters; empty if it does."""

    def put_back(self, letters: Sequence[Letter], failures: Mapping[str, FunctionLine]) -> Iterator[Replayed]:
        """Put each letter back, and yield its outcome as soon as that is known.

        Args:
            letters: those to put back.
            failures: why each failed, by event key; the log tells there under which id the event came.
        """
        begun = datetime.now(UTC)
        out: dict[str, Letter] = {}
        for letter in letters:
            failure = failures.get(event_key(letter))
            try:
                attributes = attributes_to_put_back(letter, failure.event_id if failure else "")
                event_id = self._mailbox.put_back(letter, attributes)
            except (NoSourceError, SourceGoneError, GoogleAPICallError, RetryError) as fault:
                text = f"not replayed; it stays a dead letter: {fault}"
                yield Replayed(letter_id=letter.id, well=False, text=text)
                continue
            out[event_id] = letter
            try:
                self._mailbox.take_off(letter)
            except (GoogleAPICallError, RetryError) as fault:
                text = f"replayed, but it could not be removed and will appear again: {fault}"
                yield Replayed(letter_id=letter.id, well=False, text=text)
        yield from self._watch(out, begun)

    def _watch(self, out: Mapping[str, Letter], begun: datetime) -> Iterator[Replayed]:
        deadline = time.monotonic() + self._wait_s
        open_ids = dict(out)
        lines: dict[str, FunctionLine] = {}
        while open_ids:
            try:
                lines = self._reasons.outcomes(list(open_ids), begun - CLOCKS_APART)
            except GoogleAPICallError as fault:
                self.problem = f"Cloud Logging does not report their outcome: {fault.message}"
                break
            for event_id in [each for each in open_ids if each in lines and lines[each].final]:
                yield _replayed_letter(open_ids.pop(event_id), lines[event_id])
            if not open_ids or (left := deadline - time.monotonic()) <= 0:
                break
            time.sleep(min(_LOOK_EVERY_S * math.ceil(len(open_ids) / PER_QUERY), left))
        for event_id, letter in open_ids.items():
            yield _replayed_letter(letter, lines.get(event_id))


def _replayed_letter(letter: Letter, line: FunctionLine | None) -> Replayed:
    if line is None:
        text = "replayed; the function has not reported on it yet"
        return Replayed(letter_id=letter.id, well=True, text=text)
    run = f" (run {line.run_id})" if line.run_id and line.run_id not in line.text else ""
    how = "replayed successfully"
    if line.error:
        how = "replayed, and refused permanently" if line.final else "replayed, and it failed again"
    text = f"{how}: {line.text}{'' if line.error else run}"
    return Replayed(letter_id=letter.id, well=not line.error, text=text, run_id=line.run_id)
