"""The answers to self-tests: one object each, written once. The ledger bucket's lifecycle removes them after two days."""

from trainmaster.orchestrator.core.documents.codec import encoded, json_bytes
from trainmaster.orchestrator.core.events.self_test import Answer, self_test_object
from trainmaster.orchestrator.stores.store import Store


class SelfTests(Store):
    """Where self-tests of the deployment are answered."""

    def answer(self, answer: Answer) -> str:
        """Write the answer and return its URI. Safe to repeat: the first answer under an id stays."""
        name = self_test_object(answer.self_test_id)
        # The answer to a redelivery is not written: the first one has the true latency.
        self._write_once(name, json_bytes(encoded(answer)))
        return self._uri(name)
