"""The answers to self-tests: one object each, written once."""

from datetime import timedelta
from itertools import islice

from trainmaster.orchestrator.core.documents.codec import encoded, json_bytes
from trainmaster.orchestrator.core.events.self_test import SELF_TEST_PREFIX, Answer, self_test_object
from trainmaster.orchestrator.stores.store import Store

KEPT_FOR = timedelta(days=1)
FORGOTTEN_AT_ONCE = 50
LISTED_MAX = 1000
"""Answers among which old ones are searched: one storage operation. Ids are random, so old ones are among the first."""


class SelfTests(Store):
    """Where self-tests of the deployment are answered."""

    def answer(self, answer: Answer) -> str:
        """Write the answer and return its URI. Safe to repeat: the first answer under an id stays.

        Answers older than a day are removed at the same time.
        """
        self._forget(answer)
        name = self_test_object(answer.self_test_id)
        # The answer to a redelivery is not written: the first one has the true latency.
        self._write_once(name, json_bytes(encoded(answer)))
        return self._uri(name)

    def _forget(self, answer: Answer) -> None:
        """Remove old answers here: self-tests are rare, so frequent ticks need not look for them."""
        listed, _ = self._first(SELF_TEST_PREFIX, LISTED_MAX)
        before = answer.answered_at - KEPT_FOR
        for entry in islice((entry for entry in listed if entry.created_at < before), FORGOTTEN_AT_ONCE):
            self.objects.delete(self.bucket, entry.name)
