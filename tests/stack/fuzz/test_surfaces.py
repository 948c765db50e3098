"""No request of any form brings a server down, leads out of its folder, or is answered by accident.

bench/fuzz.py --surfaces sends many more.
"""

from pathlib import Path

import pytest

from tests.core.fuzz.verdicts import Finding, Verdict
from tests.stack.fuzz.surfaces import SURFACES, Surface, fed_wire, guarded

REQUESTS = 300
SEED = 6


@pytest.mark.slow
@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.name)
def test_every_request_or_event_gets_an_intended_answer(surface: Surface, tmp_path: Path) -> None:
    with guarded(surface, tmp_path) as target:
        answers = [fed_wire(target, surface.name, SEED, number) for number in range(REQUESTS)]
    assert [answer for answer in answers if isinstance(answer, Finding)] == []
    # Requests that are all refused would test the front door alone.
    assert answers.count(Verdict.TAKEN) >= REQUESTS // 20
    assert Verdict.REFUSED in answers
