"""What an evaluator needs to evaluate: the same model as the chief's, and the whole evaluation split."""

from typing import Any

import tensorflow as tf

from trainer.faults import Unusable
from trainer.model import built_model
from trainer.pipeline import Pipeline
from trainer.subject import Subject
from trainer.weights import RANDOM


def data_and_model(subject: Subject, *, processors: int) -> tuple[Any, Any]:
    """The evaluation split, every example once, and the model that checkpoints are read into.

    Raises:
        Unusable: the data set has no evaluation split, or the model cannot be built for it.
    """
    settings, dataset = subject.settings, subject.dataset
    data = Pipeline(
        dataset=dataset,
        image_size=settings.image_size,
        batch_size=settings.batch_size,
        replicas=1,
        cache=settings.cache,
        seed=settings.seed,
        threads=max(2, processors),
    ).evaluation()
    if data is None:
        raise Unusable(
            f"An evaluator has nothing to evaluate on: {dataset.name} has no evaluation split here. Name one with "
            f"--evaluation_split, or leave worker pool 3 out of the request."
        )
    strategy = tf.distribute.get_strategy()
    model = built_model(subject, weights=RANDOM, strategy=strategy, total_steps=settings.epochs)
    return data, model
