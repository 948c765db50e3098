"""Replays letters, once each, and watches the outcome."""

import math
import sys
import time
from collections.abc import Mapping, Sequence
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


class Replay:
    """One replay. Each letter is published first and removed afterwards.

    After a crash between the two, the next replay publishes it again. The event is then delivered twice, as any event may
    be: it keeps its identity, so the functions recognize it.
    """

    def __init__(self, *, mailbox: Mailbox, reasons: Reasons, wait_s: float) -> None:
        self._mailbox = mailbox
        self._reasons = reasons
        self._wait_s = wait_s

    def put_back(self, letters: Sequence[Letter], failures: Mapping[str, FunctionLine]) -> bool:
        """Whether every letter was put back and none is known to have failed again; prints a line for each.

        Args:
            letters: those to put back.
            failures: why each failed, by event key; the log tells there under which id the event came.
        """
        begun = datetime.now(UTC)
        well = True
        out: dict[str, Letter] = {}
        for letter in letters:
            failure = failures.get(event_key(letter))
            try:
                attributes = attributes_to_put_back(letter, failure.event_id if failure else "")
                event_id = self._mailbox.put_back(letter, attributes)
            except (NoSourceError, SourceGoneError, GoogleAPICallError, RetryError) as fault:
                well = False
                print(f"{letter.id}  not replayed; it stays a dead letter: {fault}")
                continue
            out[event_id] = letter
            well &= self._taken_off(letter)
        return self._watch(out, begun) and well

    def _taken_off(self, letter: Letter) -> bool:
        try:
            self._mailbox.take_off(letter)
        except (GoogleAPICallError, RetryError) as fault:
            print(f"{letter.id}  replayed, but it could not be removed and will appear again: {fault}")
            return False
        return True

    def _watch(self, out: Mapping[str, Letter], begun: datetime) -> bool:
        """Print the outcome of each event, and return whether none failed again."""
        deadline = time.monotonic() + self._wait_s
        open_ids = dict(out)
        lines: dict[str, FunctionLine] = {}
        well = True
        while open_ids:
            try:
                lines = self._reasons.outcomes(list(open_ids), begun - CLOCKS_APART)
            except GoogleAPICallError as fault:
                print(f"Cloud Logging does not report their outcome: {fault.message}", file=sys.stderr)
                break
            for event_id in [each for each in open_ids if each in lines and lines[each].final]:
                well &= not lines[event_id].error
                print(_became(open_ids.pop(event_id), lines[event_id]))
            if not open_ids or (left := deadline - time.monotonic()) <= 0:
                break
            time.sleep(min(_LOOK_EVERY_S * math.ceil(len(open_ids) / PER_QUERY), left))
        for event_id, letter in open_ids.items():
            well &= event_id not in lines
            print(_became(letter, lines.get(event_id)))
        return well


def _became(letter: Letter, line: FunctionLine | None) -> str:
    if line is None:
        return f"{letter.id}  replayed; the function has not reported on it yet"
    if line.error and line.final:
        return f"{letter.id}  replayed, and refused permanently: {line.text}"
    if line.error:
        return f"{letter.id}  replayed, and it failed again: {line.text}"
    run = f" (run {line.run_id})" if line.run_id and line.run_id not in line.text else ""
    return f"{letter.id}  replayed successfully: {line.text}{run}"
