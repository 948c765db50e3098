"""Small programs that Keras' `fit` and the trainer run: `python -m tests.trainer.fit_cases CASE MODE FOLDER`.

Modes: `first` for both of them undisturbed and a run that ends its process in a hook, `again` for its restart.
"""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

from trainer import survive

# isort: split
import keras as keras_3
import numpy as np
import tensorflow as tf

from trainer.data.examples import counted_examples
from trainer.data.pipeline import Pipeline

keras_2: Any = tf.keras  # TensorFlow has no types
RANDOM = np.random.default_rng(7)
ROWS, ASKED = RANDOM.random((88, 4), dtype=np.float32), RANDOM.random((88, 1), dtype=np.float32)
WEIGHTS = RANDOM.random(88, dtype=np.float32)
TRAINED, EVALUATED = slice(0, 64), slice(64, 88)
BATCH, STEPS = 8, 8
HOOKS = [f"on_{what}_{end}" for what in ("train_batch", "test_batch", "epoch", "test", "train") for end in ("begin", "end")]  # fmt: skip


def plain(logs: Any) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in (logs or {}).items()}


def callback(keras: Any, name: str, /, **methods: Any) -> Any:
    """A callback of this class with these methods, attributes among them."""
    return type(name, (keras.callbacks.Callback,), methods)()


def trace_of(keras: Any) -> Any:
    """Notes every call with what was in the logs, and each epoch's learning rate."""

    def noting(hook: str) -> Callable[..., None]:
        def note(self: Any, *arguments: Any, logs: Any = None) -> None:
            *numbers, logs = (*arguments, logs) if logs is not None else (*arguments, None)[:2]
            if isinstance(numbers[0] if numbers else None, dict | None):
                numbers, logs = [], numbers[0] if numbers else logs
            self.calls.append([hook, *map(int, numbers), plain(logs)])
            if hook == "on_train_batch_begin":
                self.rates.append(float(self.model.optimizer.learning_rate))

        return note

    made = callback(keras, "Trace", **{hook: noting(hook) for hook in HOOKS})
    made.calls, made.rates = [], []
    return made


def end_in(keras: Any, hook: str, number: int, *, kills: bool) -> Any:
    """Ends the training, or its process, in this call of the hook, counted from 1."""

    def method(self: Any, *_: Any, **__: Any) -> None:
        self.count += 1
        if self.count == number:
            if kills:
                os._exit(9)
            self.model.stop_training = True

    return callback(keras, "End", count=0, **{hook: method})


def scaled_weights(keras: Any, hook: str) -> Any:
    def method(self: Any, *_: Any, **__: Any) -> None:
        self.model.set_weights([values * 0.9 for values in self.model.get_weights()])

    return callback(keras, "Scale", **{hook: method})


def keeper(keras: Any) -> Any:
    """Changes weights by what it knows of earlier epochs, in all kinds of attributes."""

    def on_train_begin(self: Any, logs: object = None) -> None:
        self.average, self.losses, self.pairs, self.by_number = None, [], {}, {}
        self.low, self.high, self.lock = float("nan"), float("inf"), threading.Lock()
        self.model.optimizer.learning_rate = 0.125  # as a restart must not do once more

    def on_epoch_end(self: Any, epoch: int, logs: Any) -> None:
        weights = self.model.get_weights()
        previous = weights if self.average is None else self.average
        self.average = [0.5 * one + 0.5 * other for one, other in zip(previous, weights, strict=True)]
        self.model.set_weights(self.average)
        self.losses.append(np.float32(logs["loss"]))
        self.pairs["epoch", epoch] = (self.low, self.high)
        self.by_number[epoch] = len(self.losses)

    return callback(keras, "Keeper", on_train_begin=on_train_begin, on_epoch_end=on_epoch_end)


def unfreezing(keras: Any) -> Any:
    """Sets `trainable` after the first epoch."""

    def on_epoch_end(self: Any, *_: Any, **__: Any) -> None:
        self.model.layers[0].trainable = False

    return callback(keras, "Unfreezing", on_epoch_end=on_epoch_end)


class Posted(BaseHTTPRequestHandler):
    """Takes what RemoteMonitor sends."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with Path("posted").open("a") as file:
            file.write(self.path + "\n")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Standard output and error belong to the run."""


def all_files(keras: Any) -> list[Any]:
    server = HTTPServer(("127.0.0.1", 0), Posted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kinds = keras.callbacks

    def note(epoch: int, logs: Any) -> None:
        with Path("lambda").open("a") as file:
            file.write(f"{epoch} {sorted(logs)}\n")

    return [
        kinds.CSVLogger("log.csv", append=True),
        kinds.LambdaCallback(on_epoch_end=note),
        kinds.LearningRateScheduler(lambda _, rate: rate * 0.5),
        kinds.ModelCheckpoint("best.weights.h5", "loss", save_best_only=True, save_weights_only=True),
        kinds.ProgbarLogger(),
        kinds.TensorBoard("board"),
        kinds.RemoteMonitor(f"http://127.0.0.1:{server.server_port}"),
    ]


def plateau(keras: Any) -> Any:
    """Halves the learning rate after every epoch."""
    return keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=100)


def stopping(keras: Any, **how: Any) -> Any:
    """Takes the first epoch for the best, as the loss falls, and stops after the third."""
    return keras.callbacks.EarlyStopping("val_loss", mode="max", patience=2, **how)


class Weighting(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """A loss with a weight that falls from epoch to epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(1.0)

    def loss(self, labels: Any, predicted: Any) -> Any:
        return self.weight * tf.reduce_mean(tf.square(labels - predicted), axis=-1)

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras' signature
        self.weight.assign(self.weight * 0.5)


weighting = cache(Weighting)
IS_EAGER: list[bool] = []


def noting_loss(labels: Any, predicted: Any) -> Any:
    IS_EAGER.append(tf.executing_eagerly())
    return tf.reduce_mean(tf.square(labels - predicted), axis=-1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program; `killed` is the hook, and the number of its call, in which its process ends, if it does."""

    keras: Any = keras_2
    optimizer: Callable[[], Any] = lambda: keras_2.optimizers.SGD(0.0625, momentum=0.5)
    callbacks: Callable[[Any], Sequence[Any]] = lambda _: ()
    compiled: Callable[[], dict[str, Any]] = dict
    settings: dict[str, Any] = field(default_factory=dict)
    is_traced: bool = True
    normalizes: bool = False
    has_weights: bool = False
    killed: tuple[str, int] | None = ("on_epoch_begin", 3)


def sgd_3(**how: Any) -> Any:
    return cast(Any, keras_3).optimizers.SGD(0.0625, momentum=0.5, **how)


def diverging(*others: Any) -> Case:
    kinds = keras_2.callbacks
    rates = kinds.LearningRateScheduler(lambda epoch: 0.0625 if epoch < 2 else 1e30)
    return Case(callbacks=lambda _: [rates, *others], is_traced=False)


CASES = {
    "files": Case(
        callbacks=all_files, settings={"validation_freq": 2, "checkpoint_steps": 3}, has_weights=True,
        killed=("on_train_batch_end", 12),
    ),
    "plateau": Case(
        optimizer=lambda: keras_2.optimizers.legacy.Adam(0.0625), compiled=lambda: {"loss": weighting().loss},
        callbacks=lambda keras: [plateau(keras), keeper(keras), weighting()],
    ),
    "plateau of Keras 3": Case(
        keras=keras_3, optimizer=sgd_3, callbacks=lambda keras: [plateau(keras), keeper(keras)],
        killed=("on_epoch_end", 2),
    ),
    "best": Case(
        callbacks=lambda keras: [plateau(keras), stopping(keras, restore_best_weights=True)],
        killed=("on_test_batch_begin", 2),
    ),
    "stopped": Case(
        keras=keras_3, optimizer=sgd_3, callbacks=lambda keras: [stopping(keras)],
        compiled=lambda: {"steps_per_execution": 4}, settings={"checkpoint_steps": 3}, killed=("on_train_end", 1),
    ),
    "stopped in an epoch": Case(
        callbacks=lambda keras: [end_in(keras, "on_train_batch_end", 11, kills=False)], killed=("on_train_end", 1),
    ),
    "stopped as an epoch begins": Case(
        callbacks=lambda keras: [end_in(keras, "on_epoch_begin", 2, kills=False)], killed=("on_train_end", 1),
    ),
    "best by flag": Case(
        normalizes=True, settings={"export": "best:val_loss"}, killed=("on_epoch_begin", 4), is_traced=False,
    ),
    "averages": Case(
        optimizer=lambda: keras_2.optimizers.Adam(0.0625, use_ema=True, ema_momentum=0.9),
        callbacks=lambda keras: [scaled_weights(keras, "on_train_end")], killed=("on_train_end", 1),
    ),
    "swapped averages": Case(
        keras=keras_3, optimizer=lambda: sgd_3(use_ema=True, ema_momentum=0.9),
        callbacks=lambda keras: [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)],
        settings={"checkpoint_steps": 3}, killed=("on_train_batch_end", 21),
    ),
    "eager": Case(compiled=lambda: {"run_eagerly": True, "loss": noting_loss}),
    "by XLA": Case(
        compiled=lambda: {"jit_compile": True}, callbacks=lambda keras: [unfreezing(keras)], killed=None,
    ),
    "diverging": diverging(),
    "diverging, watched": diverging(keras_2.callbacks.TerminateOnNaN()),
}  # fmt: skip


class Program:
    """A case with its data, its model and its callbacks, in one process."""

    def __init__(self, case: Case) -> None:
        self.case, self.trace = case, trace_of(case.keras)
        self.settings = survive.TrainingSettings(**{"epochs": 4, "batch_size": BATCH} | case.settings)

    def build(self) -> Any:
        case, keras = self.case, self.case.keras
        layers, first = keras.layers, keras.initializers.GlorotUniform(3)
        norm = [layers.BatchNormalization(momentum=0.5)] if case.normalizes else []
        model = keras.Sequential([layers.Input((4,)), layers.Dense(3, kernel_initializer=first), *norm])
        model.add(layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(5)))
        compiled = {"loss": "mse", "metrics": ["mae"], "jit_compile": False} | case.compiled()
        if keras is keras_2 and not compiled["jit_compile"]:
            del compiled["jit_compile"]
        model.compile(optimizer=case.optimizer(), **compiled)
        self.model = model
        return model

    def examples(self, part: slice) -> survive.Examples:
        parts = (ROWS[part], ASKED[part], *([WEIGHTS[part]] if self.case.has_weights else []))
        return survive.Examples(lambda: tf.data.Dataset.from_tensor_slices(parts))

    def callbacks(self) -> list[Any]:
        return [*([self.trace] if self.case.is_traced else []), *self.case.callbacks(self.case.keras)]

    def fit(self) -> dict[str, Any]:
        """What `fit` leaves after the very batches of the trainer."""
        examples = [counted_examples(self.examples(part), "own") for part in (TRAINED, EVALUATED)]
        pipeline = Pipeline(examples=examples[0], evaluated=examples[1], settings=self.settings, replicas=1)
        worker, model = tf.distribute.InputContext(), self.build()
        evaluation = pipeline.evaluation(worker)
        self.history = model.fit(
            pipeline.training(worker, first_epoch=0, first_step=0, steps_per_epoch=STEPS),
            epochs=self.settings.epochs,
            steps_per_epoch=STEPS,
            validation_data=evaluation,
            validation_freq=self.settings.validation_freq,
            callbacks=self.callbacks(),
            verbose=0,
        ).history
        metrics = {
            f"val_{name}": value
            for name, value in model.evaluate(evaluation, verbose=0, return_dict=True).items()
        }
        return self.found(metrics)

    def train(self, *more: Any) -> dict[str, Any]:
        examples = [self.examples(part) for part in (TRAINED, EVALUATED)]
        metrics = survive.run(
            self.build, *examples, settings=self.settings,
            callbacks=lambda: [*self.callbacks(), *more], environment={},
        )  # fmt: skip
        self.history = self.model.history.history
        signature = tf.saved_model.load("output/model").signatures["serving_default"]
        ((name, _),) = signature.structured_input_signature[1].items()
        (predicted,) = signature(**{name: tf.constant(ROWS[EVALUATED])}).values()
        served = float(np.mean(np.abs(predicted - ASKED[EVALUATED])))
        recorded = json.loads(Path("output/model/export.json").read_text())["metrics"]
        return self.found(metrics) | {"served": served, "recorded": recorded}

    def found(self, metrics: dict[str, float]) -> dict[str, Any]:
        weights = [np.asarray(values) for values in self.model.get_weights()]
        files: dict[str, Any] = {
            path.name: path.read_text()
            for path in map(Path, ("log.csv", "lambda", "posted"))
            if path.exists()
        }
        if (saved := Path("best.weights.h5")).exists():
            other = self.build()
            other.load_weights(saved)
            files[saved.name] = digest_of(other.get_weights())
            files["board"] = scalars_in(Path("board"))
        params = getattr(self.trace, "params", None)
        return {
            "weights": digest_of(weights), "numbers": [values.tolist() for values in weights],
            "metrics": {name: value for name, value in plain(metrics).items() if name.startswith("val_")},
            "calls": self.trace.calls, "rates": self.trace.rates, "params": params, "files": files,
            "history": {name: [round(float(x), 4) for x in values] for name, values in self.history.items()},
            "eager": sorted(set(IS_EAGER)),
        }  # fmt: skip


def digest_of(weights: Sequence[Any]) -> str:
    return hashlib.sha256(b"".join(values.tobytes() for values in weights)).hexdigest()


def scalars_in(folder: Path) -> list[Any]:
    events = (
        event
        for path in sorted(folder.rglob("events*"))
        for event in tf.compat.v1.train.summary_iterator(str(path))
    )
    return sorted(
        {(value.tag, event.step) for event in events for value in event.summary.value if "epoch" in value.tag}
    )


if __name__ == "__main__":
    _, name, mode, folder = sys.argv
    case = CASES[name]
    results: dict[str, Any] = {}
    for part in ("calm", "fit", "killed") if mode == "first" else ("again",):
        place = Path(folder, "killed" if part == "again" else part)
        place.mkdir(exist_ok=True)
        os.chdir(place)
        program = Program(case)
        if part == "fit":
            results[part] = program.fit()
        elif part != "killed":
            results[part] = program.train()
        elif case.killed is not None:
            program.train(end_in(case.keras, *case.killed, kills=True))
        Path(folder, f"{mode}.json").write_text(json.dumps(results))
        IS_EAGER.clear()
        weighting.cache_clear()
