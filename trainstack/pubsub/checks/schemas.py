"""Definitions of schemas, in Avro and protobuf, and whether a message is of one.

Source: https://cloud.google.com/pubsub/docs/schemas
"""

import functools
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from trainstack.errors import InvalidArgumentError

Decode: TypeAlias = Callable[[bytes, bool], object]
"""Decodes data, from JSON if the second argument is true. Any exception means that the data is not of the schema."""

MAX_DEFINITION_BYTES = 300_000
_COMPILE_S = 30
_AVRO = 2  # Schema.Type.AVRO


@functools.lru_cache(maxsize=100)
def decoder(kind: int, definition: str) -> Decode:
    """What decodes messages of a schema of this type.

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
