"""The weights of a model that an earlier run exported, from which this one starts."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.faults import Unusable, reason_of
from trainer.replicas.cluster import ClusterSpec
from trainer.storage import location_of
from trainer.workload import StartingWeights

if TYPE_CHECKING:
    from trainer.replicas.peers import NoteBoard

KERAS_MODEL = "model.keras"
_REPAIR = "Name the directory of a model like this that a run exported, or leave out --start_from."


def exported_weights(
    uri_or_path: str, environment: Mapping[str, str], has_checkpoint: Callable[[], bool]
) -> StartingWeights:
    """The weights for `--start_from`; `has_checkpoint` says whether the run continues and needs none.

    Raises:
        Unusable: no run exported a model there, or its bucket is not mounted here.
    """
    path = location_of(uri_or_path, environment).path
    directory = path.parent if path.name == KERAS_MODEL else path
    prefix = directory / "variables" / "variables"
    if not prefix.with_name("variables.index").is_file() and not has_checkpoint():
        raise Unusable(
            f"--start_from={uri_or_path}: {str(directory)!r} is not an exported model: it has no variables/variables.index. "
            f"{_REPAIR} Only the service knows `champion` and the ids of runs."
        )
    return StartingWeights(label=uri_or_path, exported=prefix)


def load_weights(
    model: Any, weights: StartingWeights, cluster: ClusterSpec, board: "NoteBoard | None"
) -> None:
    """Set the variables of a built model to those of `weights.exported`. Every replica must call this.

    They have no names: a run exports `model.variables` in order. The state of random generators stays as built.

    Raises:
        Unusable: they are those of another model, differ from the chief's, or cannot be read.
    """
    import tensorflow as tf

    flag, prefix = f"--start_from={weights.label}", str(weights.exported)
    variables, of_model = model.variables, {id(variable) for variable in model.weights}
    named = {str(n): variable for n, variable in enumerate(variables) if id(variable) in of_model}
    try:
        reader = tf.train.load_checkpoint(prefix)
        # The index has checksums of all values.
        sha256 = hashlib.sha256(Path(f"{prefix}.index").read_bytes()).hexdigest()
        if fault := _first_difference(variables, reader):
            raise Unusable(f"{flag}: the weights are those of another model: {fault}. {_REPAIR}")
        tf.train.Checkpoint(model_variables=named).read(prefix).assert_existing_objects_matched()
    except (OSError, ValueError, IndexError, tf.errors.OpError) as error:
        raise Unusable(f"{flag}: the weights cannot be read ({reason_of(error)}). {_REPAIR}") from error
    if board is not None and cluster.is_chief:
        board.put("starts_from", sha256)
    elif board is not None and board.read("starts_from") != sha256:
        raise Unusable(
            f"{flag}: {cluster.replica} has other weights there than the chief. Name a directory in a bucket."
        )
    # Keras 2 has begun them with the weights as they were built.
    averages = getattr(model.optimizer, "_model_variables_moving_average", ())
    for average, variable in zip(averages, model.trainable_variables, strict=False):
        average.assign(variable)


def _first_difference(variables: Any, reader: Any) -> str:
    """The first variable whose type or shape is another one in the export; empty if all fit."""
    import tensorflow as tf

    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    for number, variable in enumerate([*variables, None]):
        key = f"model_variables/{number}/.ATTRIBUTES/VARIABLE_VALUE"
        there = f"{types[key].name} {shapes[key]}" if key in shapes else "missing"
        if variable is None:
            break
        here = f"{tf.as_dtype(variable.dtype).name} {list(variable.shape)}"
        if here != there:
            return f"{getattr(variable, 'path', variable.name)} is {here} in this run, and {there} there"
    return "" if there == "missing" else f"it has more variables than this one, which has {len(variables)}"
