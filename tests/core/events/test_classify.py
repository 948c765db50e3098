"""What arrives is known by its name and its keys."""

from datetime import UTC, datetime

import pytest

from trainmaster.orchestrator.core.events.classify import Kind, kind_of_drop
from trainmaster.orchestrator.core.events.envelope import Envelope

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"bucket": "inbox", "name": "rules/a.yaml"}, Kind.RULE),
        ({"bucket": "inbox", "name": "rules/a/b.JSON"}, Kind.RULE),
        ({"bucket": "other", "name": "rules/a.yaml"}, Kind.REQUEST),
        ({"bucket": "inbox", "name": "rules/a.txt"}, Kind.REQUEST),
        ({"bucket": "inbox", "name": "requests/rules/a.yaml"}, Kind.REQUEST),
        ({"bucket": "inbox"}, Kind.REQUEST),
        (None, Kind.REQUEST),
    ],
)
def test_only_a_file_under_rules_of_the_inbox_is_a_rule(data: object, kind: Kind) -> None:
    event = Envelope(id="1", type="t", source="s", subject="", time=NOW, received_at=NOW, data=data)
    assert kind_of_drop(event, "inbox") is kind
