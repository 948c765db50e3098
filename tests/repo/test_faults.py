"""The page of fault messages shows every fault of the code, as the code says it now."""

import re

from tests.repo.faults.page import PAGE, expected, messages
from tests.repo.faults.sites import ANYTHING, schema_problems, sites

SHOWN = messages(PAGE.read_text())
RENEW = "run python -m tests.repo.faults; a fault that no test makes needs a test"


def says(message: str, pattern: str) -> bool:
    """Whether the problem of a message, between its path and what was found, is of the pattern."""
    return re.search(rf"\$.*?: {pattern}(?:; |$)", message) is not None


def test_each_fault_of_the_code_has_an_example_on_the_page() -> None:
    missing = [
        (path, pattern)
        for path, patterns in expected().items()
        for pattern in patterns
        if not any(says(each, pattern) for each in SHOWN.get(path, ()))
    ]
    assert missing == [], RENEW


def test_each_message_on_the_page_is_one_that_the_code_still_makes() -> None:
    patterns = expected()
    stale = [
        (path, each)
        for path, shown in SHOWN.items()
        for each in shown
        if not any(says(each, pattern) for pattern in patterns.get(path, ()))
    ]
    assert stale == [], RENEW


def test_the_problems_of_almost_every_fault_are_read_from_its_source() -> None:
    """A pattern that matches any text proves nothing about the message."""
    found = [pattern for site in sites() for pattern in site.problems]
    assert len(found) > 180
    assert found.count(ANYTHING) <= 8
    assert sum(map(len, schema_problems().values())) > 10
