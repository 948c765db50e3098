"""Every parameter of a served method and every field of its body is honoured, refused, or without effect in the service."""

from tests.judges.discovery import api, filled
from tests.judges.surfaces import gaps
from trainstack.vertex.resources.methods import OPERATIONS, methods
from trainstack.vertex.resources.rest import SURFACE

SERVED = [method for service, method in methods() if service != OPERATIONS]
OWN = {"$alt", "name", "parent", "context", "execution", "endpoint"}
"""The older spelling of a parameter, and what bodies of gRPC have and those of REST have in their path."""


def test_the_table_has_every_parameter_and_field_of_the_methods_that_are_served() -> None:
    described = api("aiplatform.v1").document["methods"]
    names = {
        served.name: name
        for served in SERVED
        for name, method in described.items()
        if served.verb == method["verb"] and served.pattern.fullmatch(filled(method["path"]))
    }
    assert names.keys() == {served.name for served in SERVED}
    assert gaps(SURFACE, "aiplatform.v1", methods=names, schemas="GoogleCloudAiplatformV1", own=OWN) == []
