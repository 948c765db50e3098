"""Cloud Storage's only gRPC call here: the layout of a bucket, which gcsfs asks for before it opens a bucket's first file."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from trainstack.transcoding.method import Services, method_from

_PACKAGE = "google.storage.control.v2"
_FIELD = descriptor_pb2.FieldDescriptorProto


def services() -> Services:
    """The methods by service.

    The messages are those of google/storage/control/v2/storage_control.proto, as far as gcsfs reads them: its package is
    not among the stack's requirements. Without a field about it, a bucket has no hierarchical namespace.
    """
    request = _message_type("GetStorageLayoutRequest", "name")
    layout = _message_type("StorageLayout", "name", "location", "location_type")
    rule = "GET /v2/{name=projects/_/buckets/*/storageLayout}"
    return {f"{_PACKAGE}.StorageControl": [method_from(rule, "GetStorageLayout", request, layout)]}


def _message_type(message: str, *fields: str) -> type[Message]:
    """A message of strings, numbered from 1."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{message}.proto", package=_PACKAGE, syntax="proto3")
    described = file.message_type.add(name=message)
    for number, name in enumerate(fields, 1):
        described.field.add(name=name, number=number, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{message}"))
    return kind
