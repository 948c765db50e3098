"""Creates, revises, lists and deletes schemas, and holds the messages of topics to them.

Every public method of `Schemas` handles the request of the gRPC method with its name.
Source: https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.schemas
"""

import secrets
import time
from collections.abc import Sequence

from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.pubsub.checks.schemas import decoder
from trainstack.pubsub.checks.settings import refuse_not_imitated
from trainstack.pubsub.errors import InvalidArgument
from trainstack.pubsub.resources import EMPTY, check_new, page_of
from trainstack.pubsub.service import PubsubService

_JSON = 1  # Encoding.JSON
_FULL = 2  # SchemaView


class Schemas:
    """The service has each schema's revisions, the oldest first."""

    def __init__(self, service: PubsubService) -> None:
        self._service = service

    def create(self, request: wire.Message) -> wire.Message:
        name = f"{request.parent}/schemas/{request.schema_id}"
        check_new(name, "schemas", self._service.schemas)
        return self._revise(name, request.schema)

    def _revise(self, name: str, given: wire.Message) -> wire.Message:
        """Add a revision with the given type and definition."""
        refuse_not_imitated(given)
        decoder(given.type_, given.definition)
        schema = wire.plain("Schema")(name=name, type_=given.type_, definition=given.definition)
        schema.revision_id = secrets.token_hex(4)
        schema.revision_create_time.FromNanoseconds(time.time_ns())
        self._service.store.put("schemas", f"{name}@{schema.revision_id}", schema.SerializeToString())
        self._service.schemas.setdefault(name, []).append(schema)
        return schema

    def commit(self, request: wire.Message) -> wire.Message:
        latest = self._service.schema(request.name)
        if request.schema.type_ != latest.type_:
            raise InvalidArgument("A schema's revisions must have its type.")
        return self._revise(latest.name, request.schema)

    def rollback(self, request: wire.Message) -> wire.Message:
        earlier = self._service.schema(f"{request.name}@{request.revision_id}")
        return self._revise(request.name, earlier)

    def get(self, request: wire.Message) -> wire.Message:
        return _shown(self._service.schema(request.name), request.view or _FULL)

    def list(self, request: wire.Message) -> wire.Message:
        page, token = page_of(self._service.schemas, request, project=request.parent)
        shown = [_shown(self._service.schema(name), request.view) for name in page]
        return wire.plain("ListSchemasResponse")(schemas=shown, next_page_token=token)

    def list_revisions(self, request: wire.Message) -> wire.Message:
        """All of them on one page, the newest first."""
        name = self._service.schema(request.name).name
        shown = [_shown(one, request.view) for one in reversed(self._service.schemas[name])]
        return wire.plain("ListSchemaRevisionsResponse")(schemas=shown)

    def delete_revision(self, request: wire.Message) -> wire.Message:
        schema = self._service.schema(request.name)
        if "@" not in request.name or len(self._service.schemas[schema.name]) == 1:
            raise InvalidArgument("The name must have a revision, NAME@REVISION, and not be of the only one.")
        self._delete([schema])
        return self._service.schema(schema.name)

    def delete(self, request: wire.Message) -> wire.Message:
        """Publishing to its topics then fails."""
        schema, service = self._service.schema(request.name), self._service
        self._delete(list(service.schemas[schema.name]))
        service.drop_policy(schema.name)
        for topic in service.topics.values():
            if topic.schema_settings.schema == schema.name:
                topic.schema_settings.schema = names.DELETED_SCHEMA
                service.put("topics", topic)
        return EMPTY

    def _delete(self, revisions: Sequence[wire.Message]) -> None:
        for schema in revisions:
            self._service.store.delete("schemas", f"{schema.name}@{schema.revision_id}")
            self._service.schemas[schema.name].remove(schema)
        if not self._service.schemas[revisions[0].name]:
            del self._service.schemas[revisions[0].name]

    def validate(self, request: wire.Message) -> wire.Message:
        refuse_not_imitated(request.schema)
        decoder(request.schema.type_, request.schema.definition)
        return wire.plain("ValidateSchemaResponse")()

    def validate_message(self, request: wire.Message) -> wire.Message:
        schema = self._service.schema(request.name) if request.name else request.schema
        if not _is_of(schema, request.message, request.encoding):
            raise InvalidArgument("Invalid data in message: Message failed schema validation.")
        return wire.plain("ValidateMessageResponse")()


def _shown(schema: wire.Message, view: int) -> wire.Message:
    """The schema in the view, by default without its definition."""
    if view == _FULL:
        return schema
    shown = type(schema)()
    shown.CopyFrom(schema)
    shown.ClearField("definition")
    return shown


def hold_to_schema(service: PubsubService, topic: wire.Message, messages: Sequence[wire.Message]) -> None:
    """Refuse messages that are of none of the topic's revisions, and add the attributes that name the newest fitting one.

    Source: https://cloud.google.com/pubsub/docs/schemas#how_revisions_are_used and …/publish-topics-schema

    Raises:
        InvalidArgument: a message is of none.
    """
    settings = topic.schema_settings
    if not settings.schema:
        return
    revisions = service.schemas.get(settings.schema, [])
    ids = [one.revision_id for one in revisions]
    first = ids.index(settings.first_revision_id) if settings.first_revision_id in ids else 0
    last = ids.index(settings.last_revision_id) if settings.last_revision_id in ids else len(ids) - 1
    for message in messages:
        fitting = (
            one
            for one in reversed(revisions[first : last + 1])
            if _is_of(one, message.data, settings.encoding)
        )
        if (schema := next(fitting, None)) is None:
            raise InvalidArgument("Invalid data in message: Message failed schema validation.")
        message.attributes["googclient_schemaname"] = schema.name
        message.attributes["googclient_schemarevisionid"] = schema.revision_id
        message.attributes["googclient_schemaencoding"] = "JSON" if settings.encoding == _JSON else "BINARY"


def _is_of(schema: wire.Message, data: bytes, encoding: int) -> bool:
    decode = decoder(schema.type_, schema.definition)
    try:
        decode(data, encoding == _JSON)
    except Exception:  # whatever a decoder meets in what others sent
        return False
    return True
