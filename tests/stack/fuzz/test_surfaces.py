"""No request of any form brings a server down, leads out of its folder, or is answered by accident.

bench/fuzz.py --surfaces sends many more.
"""

from pathlib import Path

import pytest

from tests.core.fuzz.verdicts import Finding, Verdict
from tests.stack.fuzz.surfaces import SURFACES, Surface, fed_wire, guarded

REQUESTS = 300
SEED = 6
SHORT = [each for each in SURFACES if not each.name.startswith("on_")]
# Each of the others is one more process to start.
LONG = [each for each in SURFACES if each not in SHORT]


def answered(surface: Surface, folder: Path) -> None:
    with guarded(surface, folder) as target:
        answers = [fed_wire(target, surface.name, SEED, number) for number in range(REQUESTS)]
    assert [answer for answer in answers if isinstance(answer, Finding)] == []
    # Requests that are all refused would test the front door alone.
    assert answers.count(Verdict.TAKEN) >= REQUESTS // 20
    assert Verdict.REFUSED in answers


@pytest.mark.slow
@pytest.mark.parametrize("surface", SHORT, ids=lambda surface: surface.name)
def test_every_request_gets_an_answer_that_is_meant(surface: Surface, tmp_path: Path) -> None:
    answered(surface, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("surface", LONG, ids=lambda surface: surface.name)
def test_every_event_gets_an_answer_that_is_meant(surface: Surface, tmp_path: Path) -> None:
    answered(surface, tmp_path)
