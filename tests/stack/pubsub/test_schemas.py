"""Schemas, their revisions, and the messages of topics that have one."""

import json

import grpc
import pytest
from google.api_core.exceptions import AlreadyExists, InvalidArgument, NotFound
from google.pubsub_v1 import SchemaServiceClient
from google.pubsub_v1.services.schema_service.transports import SchemaServiceGrpcTransport
from google.pubsub_v1.types import Encoding, Schema

from tests.stack.pubsub.clients import Clients

AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]})
WIDER = json.dumps({"type": "record", "name": "R", "fields": [{"name": "t", "type": "string"}]})
PROTO = 'syntax = "proto3"; package p; message M { string text = 1; map<string, Kind> kinds = 2; enum Kind { NONE = 0; } }'


@pytest.fixture
def schemas(ours: Clients) -> SchemaServiceClient:
    channel = grpc.insecure_channel(ours.address)
    return SchemaServiceClient(transport=SchemaServiceGrpcTransport(channel=channel))


def create(schemas: SchemaServiceClient, name: str, kind: int, definition: str) -> Schema:
    request = {
        "parent": "projects/p1",
        "schema_id": name,
        "schema": {"type_": kind, "definition": definition},
    }
    return schemas.create_schema(request=request)


@pytest.mark.parametrize(
    ("kind", "definition", "encoding", "good", "bad"),
    [
        (Schema.Type.AVRO, AVRO, Encoding.JSON, '{"n": 3}', '{"n": "three"}'),
        (Schema.Type.AVRO, AVRO, Encoding.BINARY, "\x06", "\x06\x06"),
        (
            Schema.Type.PROTOCOL_BUFFER,
            PROTO,
            Encoding.JSON,
            '{"text": "x", "kinds": {"a": "NONE"}}',
            '{"n": 3}',
        ),
        (Schema.Type.PROTOCOL_BUFFER, PROTO, Encoding.BINARY, "\n\x01x", "\n\x05x"),
    ],
)
def test_messages_are_held_to_the_schema_of_their_topic(
    ours: Clients,
    schemas: SchemaServiceClient,
    kind: int,
    definition: str,
    encoding: Encoding,
    good: str,
    bad: str,
) -> None:
    schema = create(schemas, f"schema-{kind}-{encoding}", kind, definition)
    topic = ours.topic_name()
    settings = {"schema": schema.name, "encoding": encoding}
    ours.publisher.create_topic(request={"name": topic, "schema_settings": settings})
    subscription = ours.subscription(topic)
    ours.publish(topic, good)
    with pytest.raises(InvalidArgument, match="failed schema validation"):
        ours.publish(topic, bad)
    (received,) = ours.pull(subscription)
    assert received.message.attributes["googclient_schemarevisionid"] == schema.revision_id
    shared = {"parent": "projects/p1", "name": schema.name, "encoding": encoding}
    schemas.validate_message(request={**shared, "message": good.encode()})
    with pytest.raises(InvalidArgument, match="failed schema validation"):
        schemas.validate_message(request={**shared, "message": bad.encode()})
    schemas.delete_schema(name=schema.name)
    with pytest.raises(InvalidArgument, match="failed schema validation"):
        ours.publish(topic, good)


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        (Schema.Type.AVRO, '{"type": "thud"}'),
        (Schema.Type.AVRO, "{"),
        (Schema.Type.PROTOCOL_BUFFER, "message M { thud }"),
        (Schema.Type.PROTOCOL_BUFFER, "message A {} message B {}"),
        (Schema.Type.PROTOCOL_BUFFER, ""),
    ],
)
def test_what_defines_no_schema_is_refused(schemas: SchemaServiceClient, kind: int, definition: str) -> None:
    with pytest.raises(InvalidArgument, match=r"Invalid .*schema"):
        schemas.validate_schema(parent="projects/p1", schema=Schema(type_=kind, definition=definition))


def test_a_schemas_revisions_are_kept_until_one_is_deleted(
    ours: Clients, schemas: SchemaServiceClient
) -> None:
    first = create(schemas, "revised", Schema.Type.AVRO, AVRO)
    with pytest.raises(AlreadyExists):
        create(schemas, "revised", Schema.Type.AVRO, AVRO)
    second = schemas.commit_schema(name=first.name, schema=Schema(type_=Schema.Type.AVRO, definition=WIDER))
    back = schemas.rollback_schema(name=first.name, revision_id=first.revision_id)
    listed = [one.revision_id for one in schemas.list_schema_revisions(name=first.name)]
    assert listed == [back.revision_id, second.revision_id, first.revision_id]
    assert schemas.get_schema(name=f"{first.name}@{second.revision_id}").definition == WIDER
    assert not next(iter(schemas.list_schemas(parent="projects/p1"))).definition
    topic, only = ours.topic_name(), second.revision_id
    settings = {
        "schema": first.name,
        "encoding": Encoding.JSON,
        "first_revision_id": only,
        "last_revision_id": only,
    }
    ours.publisher.create_topic(request={"name": topic, "schema_settings": settings})
    ours.publish(topic, '{"t": "x"}')
    with pytest.raises(InvalidArgument):
        ours.publish(topic, '{"n": 1}')
    schemas.delete_schema_revision(name=f"{first.name}@{second.revision_id}")
    with pytest.raises(NotFound):
        schemas.get_schema(name=f"{first.name}@{second.revision_id}")
