"""Trains ResNet50 on cassava with MultiWorkerMirroredStrategy, in the steps and calls of Google's codelab.

https://codelabs.developers.google.com/vertex_multiworker_training, read 2026-11.
It differs in three values that make it small: images of 64 pixels, eight in a batch, and no ImageNet weights.
With CODELAB_NETWORK=small three layers stand for ResNet50, whose graphs alone take the better part of a minute.
"""

import os

import tensorflow as tf
import tensorflow_datasets as tfds

PER_REPLICA_BATCH_SIZE = 8
IMAGE_SIZE = (64, 64)
EPOCHS = 1

# A path that the program has by itself, in a bucket that its reader fills in.
BUCKET = "gs://e2e-shared-models/codelab/mwms"


def preprocess_data(image, label):
    image = tf.image.resize(image, IMAGE_SIZE)
    return tf.cast(image, tf.float32) / 255.0, label


def create_dataset(batch_size):
    data, info = tfds.load(name="cassava", as_supervised=True, with_info=True)
    train_data = data["train"].map(preprocess_data, num_parallel_calls=tf.data.experimental.AUTOTUNE)
    train_data = train_data.shuffle(1000).batch(batch_size).prefetch(tf.data.experimental.AUTOTUNE)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return train_data.with_options(options), info.features["label"].num_classes


def create_base():
    if os.environ.get("CODELAB_NETWORK") != "small":
        return tf.keras.applications.ResNet50(weights=None, include_top=False)
    inputs = tf.keras.Input((None, None, 3))
    hidden = tf.keras.layers.Conv2D(8, 3, strides=4)(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.BatchNormalization()(hidden))


def create_model(number_of_classes):
    base = create_base()
    hidden = tf.keras.layers.GlobalAveragePooling2D()(base.output)
    hidden = tf.keras.layers.Dense(1016, activation="relu")(hidden)
    predictions = tf.keras.layers.Dense(number_of_classes, activation="softmax")(hidden)
    model = tf.keras.Model(inputs=base.input, outputs=predictions)
    model.compile(
        loss="sparse_categorical_crossentropy",
        optimizer=tf.keras.optimizers.Adam(0.0001),
        metrics=["accuracy"],
    )
    return model


def _is_chief(task_type, task_id):
    return task_type == "chief"


def _get_temp_dir(dirpath, task_id):
    temp_dir = os.path.join(dirpath, f"workertemp_{task_id}")
    tf.io.gfile.makedirs(temp_dir)
    return temp_dir


def write_filepath(filepath, task_type, task_id):
    dirpath, base = os.path.dirname(filepath), os.path.basename(filepath)
    if not _is_chief(task_type, task_id):
        dirpath = _get_temp_dir(dirpath, task_id)
    return os.path.join(dirpath, base)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    train_data, number_of_classes = create_dataset(PER_REPLICA_BATCH_SIZE * strategy.num_replicas_in_sync)
    with strategy.scope():
        model = create_model(number_of_classes)
    model.fit(train_data, epochs=EPOCHS)
    resolver = strategy.cluster_resolver
    model.save(write_filepath(BUCKET, resolver.task_type, resolver.task_id))


if __name__ == "__main__":
    main()
