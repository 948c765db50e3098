"""Steps that the chief hands out to workers."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from trainer.faults import Unusable
from trainer.settings.settings import Settings
from trainer.training.keras_models import is_keras_2
from trainer.training.reporting import numbers
from trainer.training.steps import Steps


def require_one_output(batch: Any) -> None:
    """Check that an evaluation can be spread over the workers. `batch` is the nest of tf.TensorSpec of one.

    Raises:
        Unusable: its labels are of several outputs, which Keras' exact evaluation does not support.
    """
    outputs = len(tf.nest.flatten(tf.keras.utils.unpack_x_y_sample_weight(batch)[1]))
    if outputs > 1:
        raise Unusable(
            f"--strategy=parameter_server: the examples have labels for {outputs} outputs, and on parameter servers Keras "
            f"evaluates models with one. Give no examples to evaluate, or leave worker pool 2 out of the request."
        )


class CoordinatedSteps(Steps):
    """`train` returns at once, with a promise of the metrics; the evaluation is Keras' exact one."""

    def __init__(self, model: Any, settings: Settings, coordinator: Any) -> None:
        """`coordinator` hands out the steps.

        Raises:
            Unusable: the model is of Keras 3, or as Steps.
        """
        if not is_keras_2(model):
            raise Unusable(
                "--strategy=parameter_server: the workload builds its model with Keras 3, which does not support "
                "parameter servers. Build it with tf.keras, or leave worker pool 2 out of the request."
            )
        super().__init__(model, settings)
        self._coordinator = coordinator

    def train(self, batches: Any, count: int) -> Any:
        """A RemoteValue of what Steps' returns; one worker runs all `count` steps."""
        return self._coordinator.schedule(self._train, args=(batches, *self._counted(count)))

    def evaluate(self, data: Any, steps: int, callbacks: Any) -> dict[str, float]:
        """As Steps'; `steps` is the number of shards, each of which a worker evaluates once."""
        found: Mapping[str, Any] = self.model.evaluate(
            data, steps=steps, callbacks=callbacks, verbose=0, return_dict=True
        )
        return numbers(found)
