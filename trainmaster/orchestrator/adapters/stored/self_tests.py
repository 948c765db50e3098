"""Answers to self-tests over any object store: one object each, written once."""

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from trainmaster.orchestrator.adapters.objects import Objects, json_bytes
from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.errors import GenerationMoved
from trainmaster.orchestrator.core.events.self_test import SELF_TEST_PREFIX, Answer, self_test_object
from trainmaster.orchestrator.core.names import object_uri

KEPT_FOR = timedelta(days=1)
FORGOTTEN_AT_ONCE = 50


@dataclass(frozen=True)
class StoredSelfTests:
    """See `trainmaster.orchestrator.ports.self_tests.SelfTests`."""

    objects: Objects
    bucket: str

    def answer(self, answer: Answer) -> str:
        self._forget(answer)
        name = self_test_object(answer.self_test_id)
        with contextlib.suppress(GenerationMoved):  # a redelivery: the first answer has the true latency
            self.objects.write(self.bucket, name, json_bytes(_document(answer)), if_generation=0)
        return object_uri(self.bucket, name)

    def _forget(self, answer: Answer) -> None:
        """Remove old answers: self-tests are rare, and ticks, which are not, need not look for them."""
        listed = self.objects.listing(self.bucket, SELF_TEST_PREFIX)
        before = answer.answered_at - KEPT_FOR
        for each in islice((each for each in listed if each.created_at < before), FORGOTTEN_AT_ONCE):
            self.objects.delete(self.bucket, each.name)


def _document(answer: Answer) -> dict[str, object]:
    return {
        "schema": "self_test.v1",
        "self_test_id": answer.self_test_id,
        "entry_point": answer.entry_point,
        "asked_at": encoded_time(answer.asked_at),
        "answered_at": encoded_time(answer.answered_at),
        "latency_s": answer.latency_s,
        **({"verdict": dict(answer.verdict)} if answer.verdict is not None else {}),
    }
