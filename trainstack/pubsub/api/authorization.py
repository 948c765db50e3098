"""Which resources a Pub/Sub call is about, and the refusal for lack of a permission on them."""

from collections.abc import Iterator

from trainstack.iam.authorization import DeniedError, Resource, authorize
from trainstack.iam.service import Grants
from trainstack.pubsub import wire
from trainstack.pubsub.errors import PermissionDenied
from trainstack.pubsub.injections import place_of


def may_call(grants: Grants | None, method_name: str, request: wire.Message) -> None:
    """Raises `PermissionDenied`."""
    try:
        authorize(grants, place_of(method_name), dict(_resources(request)))
    except DeniedError as denied:
        raise PermissionDenied from denied


def _resources(request: wire.Message) -> Iterator[tuple[str, Resource]]:
    """The topic, subscription and project in the request; of a new resource, the project that is to contain it."""
    fields = request.DESCRIPTOR.fields_by_name
    for kind in ("topic", "subscription"):
        if kind in fields:
            value = getattr(request, kind)
            yield kind, Resource(name=value if isinstance(value, str) else value.name)
    for field in ("project", "name"):
        if field in fields:
            yield "project", Resource(name="/".join(getattr(request, field).split("/")[:2]))
