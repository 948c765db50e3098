"""ResNet50 with a dense head, by default on cassava: the multi-worker image classifier."""

from typing import Any

from trainer.images.classification import ModelSpec, image_classification
from trainer.images.weights import Pretrained

HEAD_UNITS = 1016


def build(spec: ModelSpec) -> Any:
    """ResNet50, global average pooling, dense 1016 relu, softmax; Adam and sparse categorical cross-entropy."""
    import tensorflow as tf

    backbone = tf.keras.applications.ResNet50(
        include_top=False, weights=spec.weights_path, input_shape=(*spec.image_size, 3)
    )
    pooled = tf.keras.layers.GlobalAveragePooling2D()(backbone.output)
    hidden = tf.keras.layers.Dense(HEAD_UNITS, activation="relu")(pooled)
    # float32 under every policy: 16 bits are too few for a softmax.
    probabilities = tf.keras.layers.Dense(spec.classes, activation="softmax", dtype="float32")(hidden)
    model = tf.keras.Model(backbone.input, probabilities, name="resnet50_classifier")
    model.compile(
        # The same Adam; this implementation updates a variable in one operation instead of fourteen, which
        # makes tracing six times as fast and the step smaller.
        optimizer=tf.keras.optimizers.legacy.Adam(spec.learning_rate),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


WORKLOAD = image_classification(
    build=build,
    dataset="cassava",
    image_size=(300, 300),
    batch_size=64,
    epochs=2,
    learning_rate=1e-4,
    # The file and hash of tf_keras.applications.resnet, ResNet50 without its top.
    pretrained=Pretrained(
        name="imagenet",
        url="https://storage.googleapis.com/tensorflow/keras-applications/resnet/"
        "resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5",
        md5="4d473c1dd8becc155b73f8504c6f6626",
    ),
)
