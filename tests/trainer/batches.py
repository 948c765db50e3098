"""Prints, as JSON, the batches of input pipelines over a data set, and what each of them decoded.

Run by test_pipeline.py, which asserts: TensorFlow is loaded once, in a process of this program.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trainer  # noqa: F401  # chooses Keras before TensorFlow is loaded

# isort: split
import numpy as np
import tensorflow as tf

from trainer.data.pipeline import Pipeline, distributed_batches
from trainer.export.saved_model import save_model
from trainer.faults import Unusable
from trainer.images.pixels import decoded_pixels, serving_signatures
from trainer.replicas.cluster import ClusterSpec
from trainer.storage import outputs_from
from trainer.task import command_from
from trainer.workload import TrainingRun

REPLICAS, BATCH_SIZE, STEPS = 4, 2, 4
THREADS = 2  # of each pipeline
TAKEN = 10  # steps: two epochs and a half
SIDE = 8

tf.config.threading.set_inter_op_parallelism_threads(THREADS)
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


def main() -> None:
    data_dir = sys.argv[1]
    plain, cached = (run_of(data_dir, *options) for options in ((), ("--cache",)))
    print(  # noqa: T201
        json.dumps(
            {
                "kept": {workers: orders(plain, workers) for workers in (1, 2)},
                "buffered": {workers: orders(plain, workers, size_bytes=None) for workers in (1, 2)},
                "cached": {workers: orders(cached, workers) for workers in (1, 2)},
                "evaluated": {workers: evaluations(plain, workers) for workers in (1, 4)},
                "served_as_trained": served_as_trained(plain, cached),
                "refusals": {count: refusal(data_dir, count) for count in (5656, 8000)},
                "mirrored": mirrored(plain),
            }
        )
    )


def run_of(data_dir: str, *options: str) -> TrainingRun:
    command = command_from(
        [f"--data_dir={data_dir}", f"--image_size={SIDE}", f"--batch_size={BATCH_SIZE}", *options]
    )
    run = TrainingRun(
        workload=command.workload,
        settings=command.settings,
        cluster=ClusterSpec(),
        outputs=outputs_from({}, None),
        environment={},
        flags=command.flags,
    )
    return run.with_data()


def pipeline_of(run: TrainingRun, replicas: int, **changes: Any) -> Pipeline:
    """With `changes` to the examples."""
    training, evaluated = run.data.training, run.data.evaluation
    assert evaluated is not None
    return Pipeline(
        examples=replace(training, **changes), evaluated=replace(evaluated, **changes),
        settings=run.settings, replicas=replicas,
    )  # fmt: skip


class Counting:
    """Decodes as the trainer does, and keeps the name of each image that it decoded."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, pair: tuple[Any, Any]) -> Any:
        encoded, label = pair
        image = decoded_pixels(encoded, (SIDE, SIDE))
        return tf.ensure_shape(tf.numpy_function(self._noted, [image], tf.uint8), image.shape), label

    def _noted(self, image: Any) -> Any:
        self.names.append(name_of(image))
        return image


def name_of(image: Any) -> str:
    return sha256(image.tobytes()).hexdigest()[:12]


def names_of(batch: Any) -> list[str]:
    """Of a batch of images, uint8 as they travel to the device."""
    return [name_of(image) for image in batch]


def pipelines(
    of: TrainingRun, workers: int, **options: Any
) -> Iterator[tuple[tf.distribute.InputContext, Pipeline, Counting]]:
    for worker in range(workers):
        context = tf.distribute.InputContext(
            num_input_pipelines=workers, input_pipeline_id=worker, num_replicas_in_sync=REPLICAS
        )
        decode = Counting()
        yield (
            context,
            pipeline_of(of, REPLICAS, decode=decode, **options),
            decode,
        )


def orders(of: TrainingRun, workers: int, **options: Any) -> dict[str, Any]:
    """Of each worker: the images of its first steps, and what it decoded for them and ahead of them.

    Where there are several, `due` are more steps than one can be ahead, and `continued` the last ones, from step 3
    of the second epoch on.
    """
    found: dict[str, Any] = {"steps": [], "decoded": [], "continued": [], "due": []}
    for context, pipeline, decode in pipelines(of, workers, **options):
        found["steps"].append(trained(pipeline, context, TAKEN, epoch=0, step=0))
        found["decoded"].append(list(decode.names))
        if workers > 1:
            found["due"].append(trained(pipeline, context, 4 * TAKEN, epoch=0, step=0))
        if workers == 2:
            found["continued"].append(trained(pipeline, context, TAKEN - STEPS - 3, epoch=1, step=3))
    return found


def trained(pipeline: Pipeline, context: Any, steps: int, *, epoch: int, step: int) -> list[list[str]]:
    batches = pipeline.training(context, first_epoch=epoch, first_step=step, steps_per_epoch=STEPS)
    local = REPLICAS // context.num_input_pipelines
    taken = [names_of(images) for images, _ in batches.take(steps * local).as_numpy_iterator()]
    assert all(len(batch) == BATCH_SIZE for batch in taken)
    return [flat(taken[first : first + local]) for first in range(0, len(taken), local)]


def flat(lists: Iterable[list[str]]) -> list[str]:
    return [each for some in lists for each in some]


def evaluations(of: TrainingRun, workers: int) -> dict[str, Any]:
    """Each worker's batches, and what it decoded for them."""
    found: dict[str, Any] = {"batches": [], "decoded": []}
    for context, pipeline, decode in pipelines(of, workers):
        data = pipeline.evaluation(context)
        found["batches"].append([names_of(images) for images, _ in data.as_numpy_iterator()])
        found["decoded"].append(decode.names)
    return found


def served_as_trained(*of: TrainingRun) -> bool:
    """Whether an export gives its model exactly the numbers that training gave it, with --cache and without."""
    batches = [first_batch(each) for each in of]
    encoded = {name_of(decoded_pixels(image, (SIDE, SIDE)).numpy()): image for image in encoded_images(of[0])}
    sent = [encoded[name] for name in names_of(batches[0][0])]
    with TemporaryDirectory() as name:
        count = SIDE * SIDE * 3
        class_names = [str(number) for number in range(count)]
        save_model(Repeating(), Path(name), serving_signatures(Repeating(), (SIDE, SIDE), class_names))
        serve = tf.saved_model.load(name).signatures["serving_default"]
        served = serve(image_bytes=tf.stack(sent))["probabilities"].numpy()
    prepare = tf.function(of[0].data.training.on_device)
    trained_on = [prepare(batch)[0].numpy() for batch in batches]
    return all(np.array_equal(served, images.reshape(len(sent), count)) for images in trained_on)


def refusal(data_dir: str, count: int) -> str | None:
    """How a run that caches this number of training images of 300 pixels is refused, if it is."""
    of = run_of(data_dir, "--cache", "--image_size=300")
    try:
        batches_of(pipeline_of(of, 1, count=count))(tf.distribute.InputContext())
    except Unusable as refused:
        return str(refused)
    return None


class Repeating(tf.Module):  # type: ignore[misc]  # TensorFlow has no types
    """Answers with the numbers that it was given; a model without layers."""

    def _flatten_layers(self) -> tuple[()]:
        return ()

    def __call__(self, images: Any, *, training: bool) -> Any:
        assert not training
        return tf.reshape(images, [-1, SIDE * SIDE * 3])


def first_batch(of: TrainingRun) -> Any:
    pipeline = pipeline_of(of, 1)
    data = pipeline.training(tf.distribute.InputContext(), first_epoch=0, first_step=0, steps_per_epoch=1)
    return next(data.as_numpy_iterator())


def encoded_images(of: TrainingRun) -> Iterator[Any]:
    for image, _ in of.data.training.load():
        yield image


def batches_of(pipeline: Pipeline) -> Callable[[Any], Any]:
    return lambda worker: pipeline.training(worker, first_epoch=0, first_step=0, steps_per_epoch=STEPS)


def mirrored(of: TrainingRun) -> dict[str, Any]:
    """On two devices of this machine: three steps' images, and the sizes of every evaluation batch."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    pipeline = pipeline_of(of, 2)
    steps = iter(distributed_batches(strategy, batches_of(pipeline)))
    evaluation = distributed_batches(strategy, pipeline.evaluation)
    return {
        "steps": [
            [names_of(part.numpy()) for part in strategy.experimental_local_results(next(steps)[0])]
            for _ in range(3)
        ],
        "sizes": [
            [int(part.shape[0]) for part in strategy.experimental_local_results(images)]
            for images, _ in evaluation
        ],
    }


if __name__ == "__main__":
    main()
