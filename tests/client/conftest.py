"""The context of a test that writes what its verbs read."""

from tests.client.served import served_context
from tests.fixtures import fixture_of

served = fixture_of(served_context, scope="function")
