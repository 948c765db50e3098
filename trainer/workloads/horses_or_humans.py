"""Three convolutions and a sigmoid unit, by default on horses_or_humans: the classifier to tune."""

from typing import Any

from trainer.faults import Unusable
from trainer.images.classification import ModelSpec, image_classification
from trainer.settings.setting import Setting, number, whole_number

FILTERS = (16, 32, 64)
MIN_SIDE_PX = 22  # with fewer, the last pooling layer has no input
CLASSES = 2


def build(spec: ModelSpec) -> Any:
    """3x3 relu convolutions with 2x2 max pooling, dense relu, one sigmoid unit; SGD and binary cross-entropy.

    Raises:
        Unusable: the data set does not have two classes, or the images are smaller than 22 pixels.
    """
    faults, (height, width) = [], spec.image_size
    if spec.classes != CLASSES:
        faults.append(
            f"--dataset: the data set has {spec.classes} classes, but --workload=horses_or_humans distinguishes "
            f"{CLASSES}. Choose a data set with two classes, or another workload."
        )
    if min(height, width) < MIN_SIDE_PX:
        faults.append(
            f"--image_size={height}x{width}: --workload=horses_or_humans needs at least {MIN_SIDE_PX} pixels a side."
        )
    if faults:
        raise Unusable(*faults)
    import tensorflow as tf

    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((height, width, 3))], name="horses_or_humans_classifier")
    for filters in FILTERS:
        model.add(layers.Conv2D(filters, 3, activation="relu"))
        model.add(layers.MaxPooling2D(2))
    model.add(layers.Flatten())
    model.add(layers.Dense(spec.hyperparameters["num_units"], activation="relu"))
    # float32 under every policy: 16 bits are too few for a probability.
    model.add(layers.Dense(1, activation="sigmoid", dtype="float32"))
    if spec.weights_path is not None:
        model.load_weights(spec.weights_path)
    model.compile(
        tf.keras.optimizers.legacy.SGD(spec.learning_rate, momentum=spec.hyperparameters["momentum"]),
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    return model


WORKLOAD = image_classification(
    build=build,
    dataset="horses_or_humans",
    image_size=(150, 150),
    batch_size=64,
    epochs=10,
    learning_rate=1e-2,
    hyperparameters={
        "momentum": Setting(
            number(0, 1), "momentum of SGD: the share of the previous update that is added to the next", 0.5
        ),
        "num_units": Setting(whole_number(1, 65536), "units of the hidden dense layer", 128),
    },
    mirrored=True,
)
