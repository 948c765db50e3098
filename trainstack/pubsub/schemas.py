"""Creates, revises, lists and deletes schemas, and holds the messages of topics to them.

Functions such as `create_schema` handle the request of the gRPC method with their name. The service has each schema's
revisions, the oldest first.
Source: https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.schemas
"""

import functools
import io
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from trainstack.errors import InvalidArgumentError
from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.pubsub.checks.settings import refuse_not_imitated
from trainstack.pubsub.resources import EMPTY, check_new, page_of
from trainstack.pubsub.service import PubsubService

Decode: TypeAlias = Callable[[bytes, bool], object]
"""Decodes data, from JSON if the second argument is true. Any exception means that the data is not of the schema."""

MAX_DEFINITION_BYTES = 300_000
_COMPILE_S = 30
_AVRO = 2  # Schema.Type.AVRO


@functools.lru_cache(maxsize=100)
def decoder(kind: int, definition: str) -> Decode:
    """What decodes messages of a schema of this type. Source: https://cloud.google.com/pubsub/docs/schemas

    Raises:
        InvalidArgumentError: the definition is not one, with the reason.
    """
    if not 0 < len(definition.encode()) <= MAX_DEFINITION_BYTES:
        raise InvalidArgumentError(
            f"Invalid schema definition: it must have 1 to {MAX_DEFINITION_BYTES} bytes."
        )
    return _avro_decoder(definition) if kind == _AVRO else _protobuf_decoder(definition)


def _avro_decoder(definition: str) -> Decode:
    import fastavro  # few stacks need it

    try:
        schema = fastavro.parse_schema(json.loads(definition))
    except Exception as fault:  # fastavro raises what a wrong definition happens to cause
        raise InvalidArgumentError(f"Invalid Avro schema: {fault!r:.500}") from fault

    def decode(data: bytes, is_json: bool) -> None:
        if is_json:
            (record,) = fastavro.json_reader(io.StringIO(data.decode()), schema)
            fastavro.validate(record, schema)
            return
        stream = io.BytesIO(data)
        fastavro.schemaless_reader(stream, schema)
        if stream.read(1):
            raise ValueError("more follows the record")

    return decode


def _protobuf_decoder(definition: str) -> Decode:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "schema.proto").write_text(definition, encoding="utf-8")
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "-oset", "schema.proto"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_COMPILE_S
        )
        if done.returncode:
            raise InvalidArgumentError(f"Invalid protobuf schema: {done.stderr.strip():.500}")
        (file,) = descriptor_pb2.FileDescriptorSet.FromString(Path(folder, "set").read_bytes()).file
    if file.dependency or len(file.message_type) != 1:
        raise InvalidArgumentError(
            "Invalid protobuf schema: it must have one top-level message, and import nothing."
        )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    name = ".".join(filter(None, (file.package, file.message_type[0].name)))
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def decode(data: bytes, is_json: bool) -> object:
        return json_format.Parse(data, message()) if is_json else message.FromString(data)

    return decode


_JSON = 1  # Encoding.JSON
_FULL = 2  # SchemaView


def create_schema(service: PubsubService, request: wire.Message) -> wire.Message:
    name = f"{request.parent}/schemas/{request.schema_id}"
    check_new(name, "schemas", service.schemas)
    return _revise(service, name, request.schema)


def _revise(service: PubsubService, name: str, given: wire.Message) -> wire.Message:
    """Add a revision with the given type and definition."""
    refuse_not_imitated(given)
    decoder(given.type_, given.definition)
    schema = wire.Schema(name=name, type_=given.type_, definition=given.definition)
    schema.revision_id = secrets.token_hex(4)
    schema.revision_create_time.FromNanoseconds(time.time_ns())
    service.store.put("schemas", f"{name}@{schema.revision_id}", schema.SerializeToString())
    service.schemas.setdefault(name, []).append(schema)
    return schema


def commit_schema(service: PubsubService, request: wire.Message) -> wire.Message:
    latest = service.schema(request.name)
    if request.schema.type_ != latest.type_:
        raise InvalidArgumentError("A schema's revisions must have its type.")
    return _revise(service, latest.name, request.schema)


def rollback_schema(service: PubsubService, request: wire.Message) -> wire.Message:
    earlier = service.schema(f"{request.name}@{request.revision_id}")
    return _revise(service, request.name, earlier)


def get_schema(service: PubsubService, request: wire.Message) -> wire.Message:
    return _shown(service.schema(request.name), request.view or _FULL)


def list_schemas(service: PubsubService, request: wire.Message) -> wire.Message:
    page, token = page_of(service.schemas, request, project=request.parent)
    shown = [_shown(revisions[-1], request.view) for revisions in page]
    return wire.ListSchemasResponse(schemas=shown, next_page_token=token)


def list_schema_revisions(service: PubsubService, request: wire.Message) -> wire.Message:
    """All of them on one page, the newest first."""
    name = service.schema(request.name).name
    shown = [_shown(one, request.view) for one in reversed(service.schemas[name])]
    return wire.ListSchemaRevisionsResponse(schemas=shown)


def delete_schema_revision(service: PubsubService, request: wire.Message) -> wire.Message:
    schema = service.schema(request.name)
    if "@" not in request.name or len(service.schemas[schema.name]) == 1:
        raise InvalidArgumentError(
            "The name must have a revision, NAME@REVISION, and not be of the only one."
        )
    _delete(service, [schema])
    return service.schema(schema.name)


def delete_schema(service: PubsubService, request: wire.Message) -> wire.Message:
    """Publishing to its topics then fails."""
    schema = service.schema(request.name)
    _delete(service, list(service.schemas[schema.name]))
    service.drop_policy(schema.name)
    for topic in service.topics.values():
        if topic.schema_settings.schema == schema.name:
            topic.schema_settings.schema = names.DELETED_SCHEMA
            service.put("topics", topic)
    return EMPTY


def _delete(service: PubsubService, revisions: Sequence[wire.Message]) -> None:
    for schema in revisions:
        service.store.delete("schemas", f"{schema.name}@{schema.revision_id}")
        service.schemas[schema.name].remove(schema)
    if not service.schemas[revisions[0].name]:
        del service.schemas[revisions[0].name]


def validate_schema(_service: PubsubService, request: wire.Message) -> wire.Message:
    refuse_not_imitated(request.schema)
    decoder(request.schema.type_, request.schema.definition)
    return wire.ValidateSchemaResponse()


def validate_message(service: PubsubService, request: wire.Message) -> wire.Message:
    schema = service.schema(request.name) if request.name else request.schema
    if not _is_of(schema, request.message, request.encoding):
        raise InvalidArgumentError("Invalid data in message: Message failed schema validation.")
    return wire.ValidateMessageResponse()


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
        InvalidArgumentError: a message is of none.
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
            raise InvalidArgumentError("Invalid data in message: Message failed schema validation.")
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
