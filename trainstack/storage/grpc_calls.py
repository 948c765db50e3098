"""Cloud Storage's only gRPC call here: the kind of a bucket, which gcsfs asks for before it opens a bucket's first file."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from trainstack.transcoding.method import Services, method_from

_PACKAGE = "google.storage.control.v2"
_FIELD = descriptor_pb2.FieldDescriptorProto
_MESSAGES = {
    "GetStorageLayoutRequest": {"name": (1, "")},
    "HierarchicalNamespace": {"enabled": (1, "bool")},
    "StorageLayout": {
        "name": (1, ""),
        "location": (2, ""),
        "location_type": (3, ""),
        "hierarchical_namespace": (5, "HierarchicalNamespace"),
    },
}
"""Fields with their numbers and types, strings by default, from google/storage/control/v2/storage_control.proto.

The client's package is not among the stack's requirements: gcsfs alone brings it.
"""


def services() -> Services:
    """The methods by service."""
    types = _message_types()
    return {
        f"{_PACKAGE}.StorageControl": [
            method_from(
                "GET /v2/{name=projects/_/buckets/*/storageLayout}",
                "GetStorageLayout",
                types["GetStorageLayoutRequest"],
                types["StorageLayout"],
            )
        ]
    }


def _message_types() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(name="storage_layout.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            field = described.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
            field.type = {"": _FIELD.TYPE_STRING, "bool": _FIELD.TYPE_BOOL}.get(kind, _FIELD.TYPE_MESSAGE)
            if kind in _MESSAGES:
                field.type_name = f".{_PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }
