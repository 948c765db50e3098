"""No outside input breaks its parser: it is accepted, ignored, or refused with a reason.

bench/fuzz.py feeds each parser 100,000 inputs; a number of each is enough here.
"""

import pytest

from tests.core.fuzz.parsers import PARSERS
from tests.core.fuzz.verdicts import Finding, Parser, Verdict, fed

INPUTS = 250
SEED = 6


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_every_input_is_accepted_ignored_or_refused_with_a_reason(parser: Parser) -> None:
    answers = [fed(parser, SEED, number) for number in range(INPUTS)]
    assert [answer for answer in answers if isinstance(answer, Finding)] == []
    # Inputs that are all refused, or all taken, would test nothing.
    assert {Verdict.TAKEN, Verdict.REFUSED} <= set(answers)
