"""Replays letters, once each, and watches the outcome.

A letter is published again before it is acknowledged, which may repeat it and never loses it. It carries its
former id and publish time, because the id of a message names its run.
"""

import math
import time
from collections.abc import Callable, Iterator
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
from trainmaster.client.dead_letters.mailbox import SourceGoneError
from trainmaster.client.dead_letters.opened import OpenedLetters
from trainmaster.client.dead_letters.reasons import PER_QUERY, FunctionLine

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


def replay_letters(
    opened: OpenedLetters, *, wait_s: float, on_problem: Callable[[str], object] = lambda _: None
) -> Iterator[Replayed]:
    """Put each chosen letter back, and yield its outcome as soon as that is known.

    Each is published first and removed afterwards. After a crash between the two, the next replay publishes it again.
    The event is then delivered twice, as any event may be: it keeps its identity, so the functions recognize it.

    Args:
        opened: the letters, and why each failed: the log has there under which id the event came.
        wait_s: how long the functions' log is read for outcomes.
        on_problem: gets why the log does not show them.
    """
    begun = datetime.now(UTC)
    out: dict[str, Letter] = {}
    for letter in opened.chosen:
        failure = opened.failures.get(event_key(letter))
        try:
            attributes = attributes_to_put_back(letter, failure.event_id if failure else "")
            event_id = opened.mailbox.put_back(letter, attributes)
        except (NoSourceError, SourceGoneError, GoogleAPICallError, RetryError) as fault:
            text = f"not replayed; it stays a dead letter: {fault}"
            yield Replayed(letter_id=letter.id, well=False, text=text)
            continue
        out[event_id] = letter
        try:
            opened.mailbox.take_off(letter)
        except (GoogleAPICallError, RetryError) as fault:
            text = f"replayed, but it could not be removed and will appear again: {fault}"
            yield Replayed(letter_id=letter.id, well=False, text=text)
    deadline = time.monotonic() + wait_s
    lines: dict[str, FunctionLine] = {}
    while out:
        try:
            lines = opened.reasons.outcomes(list(out), begun - CLOCKS_APART)
        except GoogleAPICallError as fault:
            on_problem(f"Cloud Logging does not report their outcome: {fault.message}")
            break
        for event_id in [event_id for event_id in out if event_id in lines and lines[event_id].final]:
            yield _replayed_letter(out.pop(event_id), lines[event_id])
        if not out or (left := deadline - time.monotonic()) <= 0:
            break
        time.sleep(min(_LOOK_EVERY_S * math.ceil(len(out) / PER_QUERY), left))
    for event_id, letter in out.items():
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
