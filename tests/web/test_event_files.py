"""Curves from TensorBoard's event files, on a real storage server, written by Keras and by TensorBoard's own writer."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2  # type: ignore[import-untyped]  # has no types
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]  # has no types

from tests.client.served import PROJECT, Served, served_context
from tests.fixtures import fixture_of
from trainmaster.client.watch.curves import Point
from trainmaster.web.pages.run import event_files as module
from trainmaster.web.pages.run.event_files import EventFiles

FILE = "events.out.tfevents.1.vm"
KERAS = """
import keras, numpy, sys
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = numpy.ones((8, 2))
board = keras.callbacks.TensorBoard(sys.argv[1], histogram_freq=1)
model.fit(x, x[:, :1], epochs=3, validation_split=0.5, callbacks=[board])
"""


served = fixture_of(served_context, scope="function")


def reader(served: Served) -> EventFiles:
    return EventFiles(served.clients, f"gs://{PROJECT}-models/m/run/logs/")


def upload(served: Served, name: str, content: bytes) -> None:
    served.clients.storage.bucket(f"{PROJECT}-models").blob(f"m/run/logs/{name}").upload_from_string(content)


def records(*values: summary_pb2.Summary.Value, first: int = 1) -> bytes:
    """One event for each value, whose step is one more than the last one's."""
    file = io.BytesIO()
    writer = RecordWriter(file)
    for step, value in enumerate(values, first):
        event = event_pb2.Event(step=step, summary=summary_pb2.Summary(value=[value]))
        writer.write(event.SerializeToString())
    return file.getvalue()


def scalar(value: float, tag: str = "loss") -> summary_pb2.Summary.Value:
    return summary_pb2.Summary.Value(tag=tag, simple_value=value)


def points(found: EventFiles) -> dict[tuple[str, str], tuple[Point, ...]]:
    """By chart and series."""
    return {(chart.name, each.name): each.points for chart in found.look() for each in chart.series}


@pytest.mark.slow
def test_what_the_tensorboard_callback_of_keras_writes(served: Served, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    subprocess.run([sys.executable, "-c", KERAS, str(logs)], check=True, capture_output=True)
    inspect = [
        "-m",
        "tensorboard.main",
        "--inspect",
        "--logdir",
        str(logs),
    ]  # docs/how-to/track-experiments.md
    shown = subprocess.run([sys.executable, *inspect], check=True, capture_output=True, text=True).stdout
    assert "epoch_loss" in shown
    for file in logs.rglob("*.tfevents.*"):
        upload(served, str(file.relative_to(logs)), file.read_bytes())
    found = points(reader(served))
    for folder in ("train", "validation"):
        assert [step for step, _ in found["epoch_loss", folder]] == [0, 1, 2]
    assert not any("kernel" in tag for tag, _ in found)  # histograms


def test_only_what_is_new_is_read_and_a_record_that_is_being_written_is_awaited(served: Served) -> None:
    whole = records(scalar(4), scalar(3), scalar(2))
    found = reader(served)
    upload(served, f"train/{FILE}", whole[:-5])
    assert points(found) == {("loss", "train"): ((1, 4), (2, 3))}
    upload(served, f"train/{FILE}", b"?" * (len(whole) * 2 // 3) + whole[len(whole) * 2 // 3 :])
    assert points(found) == {("loss", "train"): ((1, 4), (2, 3), (3, 2))}
    upload(served, f"train/{FILE}", whole)
    calls = served.clients.storage_calls
    found.look()
    assert served.clients.storage_calls == calls + 1  # the list of files


def test_tensors_of_one_number_are_scalars_and_large_records_are_passed_over(served: Served) -> None:
    one = tensor_pb2.TensorProto(dtype=1, float_val=[0.5])
    two = tensor_pb2.TensorProto(dtype=1, float_val=[0.5, 0.7])
    text = tensor_pb2.TensorProto(dtype=7, string_val=[b"x" * module.RECORD_MAX_BYTES])
    values = [summary_pb2.Summary.Value(tag="auc", tensor=tensor) for tensor in (one, two, text, one)]
    upload(served, FILE, records(*values))
    assert points(reader(served)) == {("auc", "events"): ((1, 0.5), (4, 0.5))}


@pytest.mark.parametrize("place", [3, 9, 20, -1])
def test_a_damaged_file_keeps_what_was_before_the_damage(served: Served, place: int) -> None:
    good, bad = records(scalar(4)), bytearray(records(scalar(3), first=2))
    bad[place] ^= 0xFF
    upload(served, FILE, good + bytes(bad) + records(scalar(2), first=3))
    found = reader(served)
    assert points(found) == points(found) == {("loss", "events"): ((1, 4),)}


def test_files_and_bytes_are_bounded_and_other_files_are_left_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILES_MAX", 2)
    monkeypatch.setattr(module, "LOOK_MAX_BYTES", 2 * len(records(scalar(1))))
    for name in ("a", "b", "c"):
        upload(served, f"{name}/{FILE}", records(scalar(1)) * 2)
    upload(served, "notes.txt", records(scalar(1)))
    found = reader(served)
    assert {series for _, series in points(found)} == {"a"}
    assert {series for _, series in points(found)} == {"a", "b"}
    assert EventFiles(served.clients, "gs://no-such-bucket/logs/").look() == []
