"""References to variables in a container's env."""

import pytest

from trainstack.jobs.replicas.isolation import expanded_variables


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("$(AIP_MODEL_DIR)best", "gs://b/best"),
        ("$(EARLIER)-$(EARLIER)", "1-1"),
        ("$(LATER)", "$(LATER)"),
        ("$$(EARLIER)", "$(EARLIER)"),
        ("$$$(EARLIER)", "$1"),
        ("$EARLIER ${EARLIER} $(", "$EARLIER ${EARLIER} $("),
    ],
)
def test_references_see_earlier_variables_only(value: str, found: str) -> None:
    variables = [("EARLIER", "1"), ("HERE", value), ("LATER", "2")]
    assert expanded_variables(variables, known={"AIP_MODEL_DIR": "gs://b/"})["HERE"] == found
