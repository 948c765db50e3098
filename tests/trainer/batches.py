"""The batches of input pipelines over numbers, and what each worker decoded for them, as JSON: `python -m` this module."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trainer  # noqa: F401  # chooses Keras before TensorFlow is loaded

# isort: split
import numpy as np
import tensorflow as tf

from trainer.data.examples import Examples
from trainer.data.pipeline import Pipeline, distributed_batches
from trainer.export.saved_model import save_model
from trainer.faults import Unusable
from trainer.images.pixels import decoded_pixels, scaled_images, serving_signatures
from trainer.settings.settings import TrainingSettings

REPLICAS, BATCH_SIZE, STEPS = 4, 2, 4
THREADS = 2  # of each pipeline
TAKEN = 10  # steps: two epochs and a half
SIDE = 8

slices = tf.data.Dataset.from_tensor_slices
tf.config.threading.set_inter_op_parallelism_threads(THREADS)
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


def pipeline_of(of: Callable[[Any], Examples], *, cache: bool = False, replicas: int = REPLICAS) -> Pipeline:
    """Over the examples of 39 numbers to train on and of 9 to evaluate on."""
    settings = TrainingSettings(batch_size=BATCH_SIZE, cache=cache)
    training, evaluated = (of(np.arange(1, end)) for end in (40, 10))
    return Pipeline(examples=training, evaluated=evaluated, settings=settings, replicas=replicas)


def plain(*, size_bytes: int | None = None, **how: Any) -> tuple[Pipeline, list[int]]:
    """Numbers with themselves as labels, and a list of those that were decoded."""
    decoded: list[int] = []

    def note(number: Any) -> Any:
        decoded.append(int(number))
        return number

    def noted(pair: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(note, [pair[0]], tf.int64), []), pair[1]

    def of(numbers: Any) -> Examples:
        return Examples(
            lambda: slices((numbers, numbers)), count=len(numbers), size_bytes=size_bytes, decode=noted
        )

    return pipeline_of(of, **how), decoded


def padded(*, size_bytes: int | None = None, is_ragged: bool = False) -> tuple[Pipeline, list[int]]:
    """Sequences of different lengths, each of one number, with labels of the same lengths."""

    def dense(pair: Any) -> Any:
        return tuple(tf.ensure_shape(tensor, [None]) for tensor in pair)

    def of(numbers: Any) -> Examples:
        words = tf.ragged.constant([[number] * (1 + number % 7) for number in numbers])
        decode, load = None if is_ragged else dense, lambda: slices((words, words))
        return Examples(load, count=len(numbers), size_bytes=size_bytes, decode=decode, pad=(0, -1))

    return pipeline_of(of), []


SOURCES: dict[str, Callable[[], tuple[Pipeline, list[int]]]] = {
    "kept": lambda: plain(size_bytes=99),
    "buffered": plain,
    "cached": lambda: plain(cache=True),
    "padded, buffered": padded,
    "padded, ragged": lambda: padded(size_bytes=99, is_ragged=True),
}


def runs(source: Callable[[], tuple[Pipeline, list[int]]], workers: int) -> dict[str, list[Any]]:
    """Of each worker: the batches of its first steps, and what it decoded for them and ahead of them.

    `due` are more steps than one can be ahead, and `continued` the last ones, from step 3 of the second epoch on.
    """
    found: dict[str, list[Any]] = {}
    for worker in range(workers):
        context, (pipeline, decoded) = tf.distribute.InputContext(workers, worker, REPLICAS), source()
        made = {"steps": trained(pipeline, context, TAKEN), "decoded": list(decoded)}
        made["due"] = trained(pipeline, context, 4 * TAKEN if decoded else 0)
        made["continued"] = trained(pipeline, context, TAKEN - STEPS - 3, epoch=1, step=3)
        pipeline, decoded = source()
        made |= {"evaluated": as_lists(pipeline.evaluation(context)), "decoded to evaluate": decoded}
        for name, values in made.items():
            found.setdefault(name, []).append(values)
    return found


def trained(pipeline: Pipeline, context: Any, steps: int, *, epoch: int = 0, step: int = 0) -> list[Any]:
    batches = pipeline.training(context, first_epoch=epoch, first_step=step, steps_per_epoch=STEPS)
    return as_lists(batches.take(steps * REPLICAS // context.num_input_pipelines))


def as_lists(batches: Any) -> list[Any]:
    return [[part.tolist() for part in batch] for batch in batches.as_numpy_iterator()]


def first_batches(examples: Examples, *, cache: bool) -> Any:
    settings = TrainingSettings(batch_size=BATCH_SIZE, cache=cache)
    pipeline = Pipeline(examples=examples, evaluated=None, settings=settings, replicas=1)
    return pipeline.training(tf.distribute.InputContext(), first_epoch=0, first_step=0, steps_per_epoch=1)


def is_served_as_trained(*, cache: bool) -> bool:
    """Whether an export gives its model exactly the numbers that training gave it."""
    picture = tf.io.encode_png(np.random.default_rng(4).integers(0, 256, [20, 30, 3], np.uint8))
    decode = lambda pair: (decoded_pixels(pair[0], (SIDE, SIDE)), pair[1])  # noqa: E731
    examples = Examples(lambda: slices(([picture], [0])), count=1, decode=decode)
    images, _ = next(first_batches(examples, cache=cache).as_numpy_iterator())
    trained_on = tf.function(scaled_images)(images).numpy().reshape(BATCH_SIZE, -1)
    with TemporaryDirectory() as name:
        class_names = list(map(str, range(trained_on.shape[1])))
        save_model(Repeating(), Path(name), serving_signatures(Repeating(), (SIDE, SIDE), class_names))
        serve = tf.saved_model.load(name).signatures["serving_default"]
        served = serve(image_bytes=tf.stack([picture] * BATCH_SIZE))["probabilities"].numpy()
    return np.array_equal(served, trained_on)


class Repeating(tf.Module):  # type: ignore[misc]  # TensorFlow has no types
    """Answers with the numbers that it was given; a model without layers."""

    def _flatten_layers(self) -> tuple[()]:
        return ()

    def __call__(self, images: Any, *, training: bool) -> Any:
        assert not training
        return tf.reshape(images, [-1, SIDE * SIDE * 3])


def refusal(count: int) -> str | None:
    """How a run that caches this number of images of 300 pixels is refused, if it is."""
    images = tf.zeros([1, 300, 300, 3], tf.uint8), tf.zeros([1], tf.int64)
    try:
        first_batches(Examples(lambda: slices(images), count=count), cache=True)
    except Unusable as refused:
        return str(refused)
    return None


def mirrored() -> dict[str, Any]:
    """On two devices of this machine: the examples of three steps, and of every step of an evaluation."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    pipeline, _ = plain(size_bytes=99, replicas=2)
    training = distributed_batches(
        strategy, lambda worker: pipeline.training(worker, first_epoch=0, first_step=0, steps_per_epoch=STEPS)
    )
    evaluation = distributed_batches(strategy, pipeline.evaluation)

    def parts(batch: Any) -> list[list[int]]:
        return [part.numpy().tolist() for part in strategy.experimental_local_results(batch[0])]

    return {
        "steps": [parts(batch) for batch, _ in zip(training, range(3), strict=False)],
        "evaluated": list(map(parts, evaluation)),
    }


if __name__ == "__main__":
    cases = {name: {workers: runs(source, workers) for workers in (1, 2)} for name, source in SOURCES.items()}
    refusals = {count: refusal(count) for count in (5656, 8000)}
    served_as_trained = [is_served_as_trained(cache=cache) for cache in (False, True)]
    others = {"refusals": refusals, "served as trained": served_as_trained, "mirrored": mirrored()}
    Path("cases.json").write_text(json.dumps(cases | others))
