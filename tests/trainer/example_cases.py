"""What becomes of examples of several forms, as JSON by case: `python -m` this module."""

import io
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import trainer  # noqa: F401  # chooses what tf.keras is, before TensorFlow is loaded

import keras as keras_3  # isort: skip
import numpy as np  # isort: skip
import tensorflow as tf  # isort: skip

from trainer.data.class_weights import weighting_by_class
from trainer.data.examples import Examples, batch_spec
from trainer.data.pipeline import Pipeline
from trainer.export.saved_model import plain_serving
from trainer.faults import Unusable, collect_faults
from trainer.replicas.cluster import ClusterSpec
from trainer.settings.settings import TrainingSettings
from trainer.storage import outputs_from
from trainer.training.keras_models import build_variables, inputs_of
from trainer.training.model import built_model, fitting
from trainer.training.steps import Steps
from trainer.workload import Data, TrainingRun, Workload

KERAS: dict[int, Any] = {2: tf.keras, 3: keras_3}  # TensorFlow has no types
ROWS, PRICES = np.random.default_rng(7).random((160, 6), np.float32), np.arange(160, dtype=np.float32)
SETTINGS = TrainingSettings(batch_size=2)
WORDS = [[number] * length for number, length in enumerate((1, 5, 2, 7, 3, 4, 6), start=1)]
slices = tf.data.Dataset.from_tensor_slices


def of(data: Any, *, batch: int = 0, **how: Any) -> Examples:
    return Examples(lambda: slices(data).batch(batch) if batch else slices(data), **how)


def outcome(build: Callable[[], Any], *splits: Examples) -> list[str]:
    """Why a model and these examples are refused, or the warnings when the model is built."""
    data = Data(training=splits[0], evaluation=splits[1] if splits[1:] else None)
    run = TrainingRun(
        workload=Workload(build=lambda _: build(), data=lambda _: data), settings=SETTINGS, environment={},
        cluster=ClusterSpec(), outputs=outputs_from({}, None),
    ).with_data()  # fmt: skip
    try:
        return warnings(lambda: built_model(run, strategy=tf.distribute.get_strategy(), total_steps=9))
    except Unusable as unusable:
        return list(unusable.faults)


def warnings(function: Callable[[], object]) -> list[str]:
    with redirect_stdout(io.StringIO()) as lines:
        function()
    events = map(json.loads, lines.getvalue().splitlines())
    return [event["message"] for event in events if event["severity"] == "WARNING"]


def refusals(*functions: Callable[[], object]) -> list[str]:
    faults: list[str] = []
    for function in functions:
        with collect_faults(faults):
            function()
    return faults


def dense(keras: Any, *inputs: Any, kind: Any = None, loss: Any = ("mse",), **how: Any) -> Callable[[], Any]:
    def build() -> Any:
        model = (kind or keras.Sequential)([*inputs, keras.layers.Dense(**{"units": 1} | how)])
        model.compile("sgd", *loss)
        return model

    return build


def two_inputs(keras: Any, *, is_named: bool) -> Callable[[], Any]:
    def build() -> Any:
        inputs = {"rooms": keras.layers.Input((6,), name="rooms"), "b": keras.layers.Input((1,), name="b")}
        price = keras.layers.Dense(1)(keras.layers.Concatenate()([*inputs.values()]))
        model = keras.Model(inputs if is_named else [*inputs.values()], price)
        model.compile("sgd", "mse")
        return model

    return build


def unbatched(keras: Any) -> dict[str, list[str]]:
    """Of batched examples, by the model."""

    class Own(keras.Sequential):  # type: ignore[misc]  # as above
        def call(self, x: Any, **_: Any) -> Any:
            return self.layers[-1](x)

    rows = keras.layers.Input((6,))
    batched, named = of((ROWS, PRICES), batch=16), {"rooms": ROWS, "b": PRICES, "more": PRICES}
    full = Examples(lambda: slices((ROWS, PRICES)).batch(16, drop_remainder=True))
    return {
        "sequential": outcome(dense(keras, rows), batched, batched),
        "all full": outcome(dense(keras, rows), full),
        "by name": outcome(two_inputs(keras, is_named=True), of((named, PRICES), batch=16)),
        "in order": outcome(two_inputs(keras, is_named=False), of(((ROWS, PRICES), PRICES), batch=16)),
        "lazy": outcome(dense(keras), batched),
        "own call": outcome(dense(keras, rows, kind=Own), batched, batched),
    }


def accepted(keras: Any) -> list[list[str]]:
    """Of ordinary examples of several forms."""

    def unknown(x: Any, y: Any, *shape: int | None) -> Examples:
        """Single examples of these shapes."""
        spec = tf.TensorSpec([*shape, 6]), tf.TensorSpec([*shape, 1])
        generate = tf.data.Dataset.from_generator
        return Examples(lambda: generate(lambda: zip(x, y, strict=True), output_signature=spec))

    good, rows = of((ROWS, PRICES)), keras.layers.Input((6,))
    images = np.zeros([9, 8, 8, 6], np.float32)
    sequences = [np.zeros([length, 6], np.float32) for length in (3, 4, 3, 2)]
    return [
        outcome(dense(keras, rows), good, good),
        outcome(dense(keras, keras.layers.Input((1,))), of((PRICES, PRICES))),
        outcome(two_inputs(keras, is_named=True), of(({"rooms": ROWS, "b": PRICES}, PRICES))),
        outcome(two_inputs(keras, is_named=False), of(((ROWS, PRICES), PRICES))),
        outcome(dense(keras), good),
        outcome(dense(keras), of((images, PRICES[:9]))),
        outcome(dense(keras), of((images, images[..., :1]))),
        outcome(dense(keras), unknown(images, images[..., :1], None, None)),
        outcome(dense(keras), unknown(sequences, [rows[:, :1] for rows in sequences], None)),
    ]


def words(*, ragged: bool = False, **how: Any) -> Examples:
    """Sequences of different lengths, with the number that each repeats; labels of the same lengths."""
    values = tf.ragged.constant(WORDS)
    dense = (
        None if ragged else lambda pair: (tf.ensure_shape(pair[0], [None]), tf.ensure_shape(pair[1], [None]))
    )
    return of((values, values), decode=dense, **how)


def one_batch(examples: Examples, size: int) -> Any:
    settings = TrainingSettings(batch_size=size)
    pipeline = Pipeline(examples=examples, evaluated=None, settings=settings, replicas=1)
    data = pipeline.training(tf.distribute.InputContext(), first_epoch=0, first_step=0, steps_per_epoch=1)
    return (weighting_by_class(examples) or tuple)(next(iter(data)))


def unpadded() -> None:
    """Examples of different lengths meet, and nothing pads them."""
    with fitting(batch_spec(words())):
        one_batch(words(count=len(WORDS)), 4)


LABELS = np.array([0, 1, 2, 1, 0, 2, 2, 1])
WEIGHTS = np.linspace(0.5, 2, 8).astype(np.float32)
OF_CLASSES = {0: 1.0, 1: 3.0, 2: 0.25}
LOSSES = {
    "sparse_categorical_crossentropy": LABELS,
    "categorical_crossentropy": np.eye(3, dtype=np.float32)[LABELS],
    "binary_crossentropy": (LABELS[:, np.newaxis] > 0).astype(np.float32),
}


def class_weights(keras: Any) -> dict[str, list[float]]:
    """The loss of one step by the trainer and by Keras' `fit`, with and without weights of examples."""
    losses = {}
    for loss, labels in LOSSES.items():
        for weight in (None, WEIGHTS) if keras is KERAS[2] else (None,):  # Keras 3 refuses both together
            units, activation = (1, "sigmoid") if loss[0] == "b" else (3, "softmax")
            weights = {number: OF_CLASSES[number] for number in range(2 if units == 1 else 3)}
            layer = {"units": units, "activation": activation}
            keras.utils.set_random_seed(1)
            model = dense(keras, keras.layers.Input((6,)), loss=(loss,), **layer)()
            examples = of((ROWS[:8], labels, *([] if weight is None else [weight])), class_weight=weights)
            build_variables(model, batch_spec(examples))
            steps = Steps(model, SETTINGS, Data(training=examples))
            initial = model.get_weights()
            steps.train(iter(examples.load().batch(8)), 1)
            ours, _ = steps.read_metrics()
            model.set_weights(initial)
            how = {"sample_weight": weight, "class_weight": weights}
            history = model.fit(ROWS[:8], labels, **how, batch_size=8, shuffle=False, verbose=0)
            losses[f"{loss}, {weight is not None}"] = [ours["loss"], history.history["loss"][0]]
    return losses


def weights_of_classes(labels: Any, class_weight: Any) -> list[float]:
    count = len(labels)
    _, y, weight = one_batch(of((labels, labels), count=count, class_weight=class_weight), count)
    return [float(w) for _, w in sorted(zip(y.numpy().ravel(), weight.numpy(), strict=True))]


def few(count: int, replicas: int) -> list[str]:
    settings, examples = TrainingSettings(batch_size=8), of(ROWS[:count], count=count)
    pipeline = Pipeline(examples=examples, evaluated=None, settings=settings, replicas=replicas)
    context = tf.distribute.InputContext()
    return warnings(lambda: pipeline.training(context, first_epoch=0, first_step=0, steps_per_epoch=1))


def signature(examples: Examples) -> list[Any]:
    x = inputs_of(batch_spec(examples))
    (spec,) = plain_serving(lambda numbers, **_: numbers, x)["serving_default"].input_signature
    return list(spec.shape)


CASES: Mapping[str, Callable[[], Any]] = {
    "signature": lambda: signature(words(pad=True)),
    "not padded": lambda: refusals(
        unpadded,
        lambda: batch_spec(words(ragged=True)),
        lambda: batch_spec(words(pad=(0,))),
        lambda: batch_spec(words(pad=(0, "none"))),
    ),
    "weights of classes": lambda: [
        weights_of_classes(np.array([0, 1, 2, 5]), {1: 3.0}),
        weights_of_classes(np.array([-1.0, 1.0], np.float32), {0: 2.0, 1: 3.0}),
    ],
    "no weights of classes": lambda: refusals(
        lambda: weights_of_classes(LABELS, "balanced"),
        lambda: weights_of_classes(LABELS, {"a": 1.0}),
        lambda: weighting_by_class(of(ROWS, class_weight={0: 2.0})),
        lambda: weighting_by_class(of((ROWS, {"a": PRICES}), class_weight={0: 2.0})),
    ),
    "metrics without a name": lambda: outcome(
        dense(KERAS[3], KERAS[3].layers.Input((6,)), loss=("mse", ["mae"])), of((ROWS, PRICES))
    ),
    "few": lambda: [few(5, 2), few(1, 2), few(16, 2)],
} | {
    f"{name} of Keras {number}": case
    for number, keras in KERAS.items()
    for name, case in {
        "batched": lambda keras=keras: unbatched(keras),
        "accepted": lambda keras=keras: accepted(keras),
        "class weights": lambda keras=keras: class_weights(keras),
    }.items()
}

if __name__ == "__main__":
    Path("cases.json").write_text(json.dumps({name: case() for name, case in CASES.items()}))
