"""Steps that the chief hands out to workers, and the evaluation that they share."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import tensorflow as tf

from trainer.faults import Unusable
from trainer.settings.settings import TrainingSettings
from trainer.training.keras_models import is_keras_2
from trainer.training.reporting import plain_numbers
from trainer.training.steps import Steps
from trainer.workload import Data

AHEAD_PER_WORKER = 4  # unfinished steps: enough that no worker waits, few enough to finish soon


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
    """Steps of any workers, AHEAD_PER_WORKER of each at most unfinished; the evaluation is Keras' exact one."""

    def __init__(
        self,
        model: Any,
        settings: TrainingSettings,
        coordinator: Any,
        *,
        workers: int = 1,
        data: Data | None = None,
    ) -> None:
        """`coordinator` hands out the steps.

        Raises:
            Unusable: the model is of Keras 3, or as Steps.
        """
        if not is_keras_2(model):
            raise Unusable(
                "--strategy=parameter_server: the workload builds its model with Keras 3, which does not support "
                "parameter servers. Build it with tf.keras, or leave worker pool 2 out of the request."
            )
        super().__init__(model, settings, data)
        self._coordinator = coordinator
        self._ahead = AHEAD_PER_WORKER * workers
        self._promised: deque[Any] = deque()
        self._is_first = True  # so that there are metrics to read
        self._done_at = time.monotonic()

    def train(self, batches: Any, count: int) -> None:
        """As Steps'. One worker runs all `count` steps; waiting for them would leave the other workers idle."""
        self._promised.append(self._coordinator.schedule(self._train, args=(batches, *self._count_of(count))))
        if self._is_first or len(self._promised) >= self._ahead:
            self._is_first = False
            # Its worker has left, or it was abandoned: then the next step raises the reason.
            with suppress(tf.errors.OpError, RuntimeError):
                self._promised.popleft().fetch()
                self._done_at = time.monotonic()

    def read_metrics(self, seconds: float = 0.0) -> tuple[dict[str, float], float]:
        """As Steps', of the steps that are finished by now."""
        return plain_numbers(self.model.get_metrics_result()), seconds

    def has_finite_weights(self) -> bool:
        """Taken as true: the chief would have to read all of them from the parameter servers."""
        return True

    def finish(self) -> None:
        self._coordinator.join()
        self._promised.clear()
        self._is_first = True
        self._done_at = time.monotonic()

    def idle_s(self) -> float:
        """Seconds since a step was known to be finished, or since the start."""
        return time.monotonic() - self._done_at

    def evaluate(self, data: Any, steps: int, callbacks: Any, **_: Any) -> dict[str, float]:
        """As Steps'; `steps` is the number of shards, each of which a worker evaluates once.

        Keras gives each step's metrics to callbacks, whether they read them or not.
        """
        metrics: Mapping[str, Any] = self.model.evaluate(
            data, steps=steps, callbacks=callbacks, verbose=0, return_dict=True
        )
        return plain_numbers(metrics)


def evaluate_in_shards(model: Any, coordinator: Any, shards: int) -> None:
    """Set what `fit` and `compile` would: an evaluation is handed out in shards, each evaluated once by any worker."""
    model._cluster_coordinator = coordinator  # noqa: SLF001
    model._pss_evaluation_shards = shards  # noqa: SLF001
    # Of the examples and predictions of a worker's devices, which Keras would add up.
    model.distribute_reduction_method = "concat"
