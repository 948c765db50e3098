"""Curves from the TensorBoard event files below a run's AIP_TENSORBOARD_LOG_DIR: their scalars, and nothing else.

A file is a sequence of records: 8 bytes of length, 4 of its checksum, an Event, 4 of the Event's checksum. Of the messages
only the fields that scalars need are declared.
Source: record_writer.h, event.proto and summary.proto of TensorFlow 2.21
"""

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import google_crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from trainmaster.client.errors import service_errors
from trainmaster.client.watch.curves import Chart, Curves
from trainmaster.orchestrator.core.names import split_object_uri

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

FILES_MAX, LISTED_MAX = 20, 1000
LOOK_MAX_BYTES, RECORD_MAX_BYTES = 8 * 1024 * 1024, 256 * 1024
"""A look reads no more, and the next one continues. Larger records have graphs or images, and are skipped."""
TAG_MAX_CHARS = 100
_HEAD, _TAIL = 12, 4
_MASK = 0xA282EAD8
_SCALARS = {(1, 4): "<f", (2, 8): "<d"}
"""DT_FLOAT and DT_DOUBLE with one element, by type and length."""


_MESSAGES = {
    "Tensor": ((1, "dtype", "int32", False), (4, "content", "bytes", False), (5, "floats", "float", True)),
    "Value": ((1, "tag", "string", False), (2, "simple", "float", False), (8, "tensor", "Tensor", False)),
    "Summary": ((1, "values", "Value", True),),
    "Event": ((2, "step", "int64", False), (5, "summary", "Summary", False)),
}
"""The fields of each message: number, name, type, and whether it is repeated."""


def _event_class() -> Any:  # Any: protobuf's messages are untyped
    """The class of the message Event, in a separate pool: TensorFlow's may be loaded beside it."""
    file = descriptor_pb2.FileDescriptorProto(name="scalars.proto", package="scalars")
    kinds, labels = descriptor_pb2.FieldDescriptorProto.Type, descriptor_pb2.FieldDescriptorProto.Label
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind, is_repeated in fields:
            label = labels.LABEL_REPEATED if is_repeated else labels.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            if kind in _MESSAGES:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".scalars.{kind}"
            else:
                added.type = kinds.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("scalars.Event"))


_Event = _event_class()


class EventFiles:
    """The files of one run. Every call of `look` reads what has been written since. Not for two threads at once."""

    def __init__(self, clients: "Clients", log_uri: str) -> None:
        self._clients, self._place = clients, split_object_uri(log_uri)
        self._curves, self._read = Curves(), dict[str, int]()

    def look(self) -> Sequence[Chart]:
        """A chart for each tag, with a series for each folder of files; what cannot be read is left out."""
        left = LOOK_MAX_BYTES
        try:
            for blob in self._event_blobs():
                done = self._read.get(blob.name, 0)
                if blob.size > done and left > 0:
                    content = blob.download_as_bytes(start=done, end=done + left - 1, raw_download=True)
                    left -= len(content)
                    self._read[blob.name] = done + self._add(blob.name, content)
        except service_errors():
            pass  # for example, the viewer may not read the models bucket
        return self._curves.charts

    def _event_blobs(self) -> Iterator[Any]:  # Any: untyped blobs
        bucket, prefix = self._place
        fields = "items(name,size),nextPageToken"
        for blob in self._clients.storage.list_blobs(
            bucket, prefix=prefix, max_results=LISTED_MAX, fields=fields
        ):
            is_event_file = ".tfevents." in blob.name.rpartition("/")[2]
            if is_event_file and (blob.name in self._read or len(self._read) < FILES_MAX):
                yield blob

    def _add(self, name: str, content: bytes) -> int:
        """How many bytes are done with; all there will ever be, where a checksum is wrong."""
        folder = name.removeprefix(self._place[1]).rpartition("/")[0] or "events"
        at = 0
        while len(head := content[at : at + _HEAD]) == _HEAD:
            length, checksum = struct.unpack("<QI", head)
            if checksum != _checksum(head[:8]):
                return 2**63
            end = at + _HEAD + length
            if length <= RECORD_MAX_BYTES:
                if len(content) < end + _TAIL:
                    break
                record = content[at + _HEAD : end]
                if struct.unpack("<I", content[end : end + _TAIL])[0] != _checksum(record):
                    return 2**63
                self._add_event(folder, record)
            at = end + _TAIL
        return at

    def _add_event(self, folder: str, record: bytes) -> None:
        try:
            event = _Event.FromString(record)
        except DecodeError:
            return
        for value in event.summary.values:
            if (number := _scalar(value)) is not None:
                self._curves.add_point(value.tag[:TAG_MAX_CHARS], ("step", event.step), folder, number)


def _checksum(data: bytes) -> int:
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def _scalar(value: Any) -> float | None:  # Any: protobuf's messages are untyped
    if value.HasField("simple"):
        return float(value.simple)
    tensor = value.tensor
    if len(tensor.floats) == 1:
        return float(tensor.floats[0])
    form = _SCALARS.get((tensor.dtype, len(tensor.content)))
    return float(struct.unpack(form, tensor.content)[0]) if form else None
