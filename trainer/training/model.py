"""The model of a run, built in the same way by every replica that trains or evaluates it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from trainer.data.examples import REPAIR_OF_DATA, REPAIR_OF_SHAPES, Examples, batch_spec, mapped_data
from trainer.events import report_event
from trainer.faults import Unusable, is_of_data, reason_of
from trainer.settings.settings import KERAS_BATCH_NORM_MOMENTUM, batch_norm_momentum
from trainer.training.keras_models import (
    build_variables,
    compiled_with,
    inputs_of,
    moving_averages_of_all_replicas,
    overrides,
)
from trainer.workload import TrainingRun

_TOO_FEW = re.compile(r"expected to contain (\d+) elements but contained only (\d+)")  # of assert_cardinality
_OF_SHAPES = re.compile(
    r"Cannot batch tensors with different shapes in component (\d+)\. "
    r"First element had shape (\[.*?\]) and element \d+ had shape (\[.*?\])"
)
LOOKED_AT = 8  # examples that might be batches


def built_model(run: TrainingRun, *, strategy: Any, total_steps: int) -> Any:
    """The workload's compiled model in the strategy's scope, with every variable that training needs.

    `total_steps` is how many steps the whole run has: batch normalization's averages follow it.

    Raises:
        Unusable: it is not a compiled Keras model, or it does not fit the data.
    """
    spec = batch_spec(run.data.training)
    if tf.keras.Model.__module__.startswith("keras."):
        raise Unusable(
            "tf.keras is Keras 3 in this program, because it imports tensorflow.keras before trainer, which chooses Keras 2. "
            "Import trainer first."
        )
    with strategy.scope():
        with moving_averages_of_all_replicas():
            model = run.workload.build(run)
        if getattr(model, "optimizer", None) is None:
            raise Unusable(
                f"The function that builds the model returned a {type(model).__name__} that is not compiled; "
                f"expected a model of tf.keras or keras. Call model.compile(...) and return the model."
            )
        _require_metrics_by_name(model)
        with fitting(spec):
            _require_single_examples(model, run)
            build_variables(model, spec)
    for layer in model._flatten_layers():  # noqa: SLF001 - those of a nested model, too; both Keras have it
        # By name, as it may be of either Keras.
        normalizes = any(kind.__name__ == "BatchNormalization" for kind in type(layer).__mro__)
        if normalizes and layer.momentum == KERAS_BATCH_NORM_MOMENTUM:
            layer.momentum = batch_norm_momentum(total_steps)
    return model


def _require_metrics_by_name(model: Any) -> None:
    """Refuse metrics where Keras 3's `compile` takes weights of losses."""
    weights = compiled_with(model).get("loss_weights")
    if any(isinstance(weight, str) or callable(weight) for weight in tf.nest.flatten(weights)):
        raise Unusable(
            f"model.compile: loss_weights={weights!r:.80} are metrics. The third argument is loss_weights in Keras 3: write "
            f"metrics=[…] by name."
        )


def _require_single_examples(model: Any, run: TrainingRun) -> None:
    """Refuse examples, batches for example, that are not what the model says it takes; warn where it does not say."""
    inputs = None if overrides(model, "train_step", "call") else getattr(model, "inputs", None)
    faults: list[str] = []
    for name, examples in (("training", run.data.training), ("evaluation", run.data.evaluation)):
        if examples is not None and inputs:
            faults += _faults_of_inputs(name, inputs_of(batch_spec(examples)), inputs)
        elif examples is not None:
            _warn_of_batches(name, examples)
    if faults:
        raise Unusable(*faults)


def _faults_of_inputs(name: str, x: Any, inputs: Sequence[Any]) -> Iterator[str]:
    """A fault for each of the model's `inputs` that the specification `x` of a batch does not fit."""
    flat, names = tf.nest.flatten(x), [tensor.name for tensor in inputs]
    if isinstance(x, Mapping) and x.keys() >= set(names):
        flat = [x[key] for key in names]  # else in order; Keras orders dictionaries as TensorFlow does
    for spec, tensor in zip(flat, inputs, strict=True) if len(flat) == len(inputs) else ():
        given, taken = spec.shape, tf.TensorShape(tensor.shape)
        # Keras adds or removes a last dimension of 1.
        forms = [given, given.concatenate([1]), *([given[:-1]] if given.rank and given[-1] == 1 else [])]
        if not any(form.is_compatible_with(taken) for form in forms):
            repair = "Correct the shapes of the examples, or of the model's inputs."
            if given.rank == taken.rank + 1:
                repair = "Leave out batch() in load(): survive.Examples batches by itself."
            yield (
                f"The {name} examples do not fit the model: a batch of them is {given}, and the input {tensor.name} takes "
                f"{taken}. {repair}"
            )


def _warn_of_batches(name: str, examples: Examples) -> None:
    """Report a WARNING where what load() gives looks like batches.

    Each tensor has an unknown first dimension only, and in the first elements all have the same size there, but for a
    smaller last one. Sequences have different lengths, and images an unknown width, too.
    """
    data = mapped_data(examples.load(), examples.decode)
    shapes = [spec.shape for spec in tf.nest.flatten(data.element_spec)]
    if not all(shape.rank and shape[0] is None and shape[1:].is_fully_defined() for shape in shapes):
        return
    elements = [tf.nest.flatten(element) for element in data.take(LOOKED_AT)]
    sizes = [{int(tensor.shape[0]) for tensor in element} for element in elements]
    if (
        all(size == sizes[0] for size in sizes[:-1])
        and max(sizes[-1]) <= min(sizes[0])
        and len(sizes[0]) == 1
    ):
        report_event(
            "examples_look_batched",
            f"each of the {name} examples looks like a batch of {min(sizes[0])}: leave out batch() in load(), as "
            f"survive.Examples batches by itself; or give single examples fixed shapes in decode",
            severity="WARNING",
            size=min(sizes[0]),
        )


@contextmanager
def fitting(spec: Any) -> Iterator[None]:
    """A context in which model and data meet for the first time.

    Raises:
        Unusable: TensorFlow or Keras refuses their shapes or types, or an example cannot be read.
    """
    try:
        yield
    except (
        ValueError,
        TypeError,
        tf.errors.InvalidArgumentError,
        tf.errors.FailedPreconditionError,
    ) as error:
        too_few = _TOO_FEW.search(str(error))
        is_other = isinstance(error, tf.errors.FailedPreconditionError) and not too_few
        if "ollective" in str(error) or is_other:  # a peer's fault
            raise
        if too_few:
            raise Unusable(
                f"The examples: count={too_few[1]}, but load() has only {too_few[2]}. Correct or remove it."
            ) from error
        if shapes := _OF_SHAPES.search(str(error)):
            name = dict(enumerate(_names(spec))).get(int(shapes[1]), "a tensor")
            raise Unusable(
                f"Examples of different shapes cannot make a batch: {name} is {shapes[2]} in one and {shapes[3]} in another. "
                f"{REPAIR_OF_SHAPES}"
            ) from error
        if is_of_data(error):
            raise Unusable(f"An example cannot be read: {reason_of(error)}. {REPAIR_OF_DATA}") from error
        why = f"{reason_of(error)}. A batch is {_types_and_shapes(spec)}."
        if tf.keras.utils.unpack_x_y_sample_weight(spec)[1] is None:
            raise Unusable(
                f"The examples have no labels, and the model cannot be trained on them: {why} Give pairs (inputs, labels) "
                f"if the loss needs labels; else correct the shapes or types of the data."
            ) from error
        raise Unusable(
            f"The model does not fit the data: {why} Correct the shapes or types of the data, or those that the model "
            f"and its loss take."
        ) from error


def _names(spec: Any) -> Iterator[str]:
    """The names of a batch's tensors, in TensorFlow's order: x, y, weight, and their keys or places in these."""
    for name, part in zip(("x", "y", "weight"), spec if type(spec) is tuple else (spec,), strict=False):
        keys = sorted(part) if isinstance(part, Mapping) else range(len(tf.nest.flatten(part)))
        yield from (f"{name}[{key!r}]" if tf.nest.is_nested(part) else name for key in keys)


def _types_and_shapes(nest: Any) -> str:
    """Types and shapes of the tensors of a nest."""
    words = tf.nest.map_structure(lambda spec: f"{spec.dtype.name} {list(spec.shape)}", nest)
    return str(words).replace("'", "")
