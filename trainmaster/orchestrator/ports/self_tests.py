"""The answers to self-tests."""

from typing import Protocol

from trainmaster.orchestrator.core.events.self_test import Answer


class SelfTests(Protocol):
    """Where self-tests of the deployment are answered."""

    def answer(self, answer: Answer) -> str:
        """The answer's URI, once it is written. Safe to repeat: the first answer under an id stands.

        Answers older than a day are removed meanwhile.
        """
        ...
