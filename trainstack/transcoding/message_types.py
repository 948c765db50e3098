"""Message types of APIs whose client packages are not among the stack's requirements."""

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2
from google.protobuf.message import Message

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {"string": _FIELD.TYPE_STRING, "bytes": _FIELD.TYPE_BYTES}
_KNOWN = (duration_pb2.DESCRIPTOR, timestamp_pb2.DESCRIPTOR)


def message_type(package: str, message: str, **fields: tuple[int, str]) -> type[Message]:
    """A message whose fields have a number and a kind: `string`, `bytes`, `Duration` or `Timestamp`; `string*` is a list."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{message}.proto", package=package, syntax="proto3")
    file.dependency.extend(known.name for known in _KNOWN)
    described = file.message_type.add(name=message)
    for name, (number, kind) in fields.items():
        label = _FIELD.LABEL_REPEATED if kind.endswith("*") else _FIELD.LABEL_OPTIONAL
        field = described.field.add(name=name, number=number, label=label)
        field.type = _SCALARS.get(kind.rstrip("*"), _FIELD.TYPE_MESSAGE)
        if field.type == _FIELD.TYPE_MESSAGE:
            field.type_name = f".google.protobuf.{kind}"
    pool = descriptor_pool.DescriptorPool()
    for known in _KNOWN:
        pool.AddSerializedFile(known.serialized_pb)
    pool.Add(file)
    kind_of_message: type[Message] = message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"{package}.{message}")
    )
    return kind_of_message
