"""Train a small network on horses_or_humans with MirroredStrategy, and report its accuracy to the study.

In the steps of https://codelabs.developers.google.com/vertex_hyperparameter_tuning, read 2026-11.
README.md beside this folder lists what differs, and why.
"""

import argparse
import os

import hypertune
import tensorflow as tf
import tensorflow_datasets as tfds


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning_rate", required=True, type=float)
    parser.add_argument("--momentum", required=True, type=float, help="of SGD")
    parser.add_argument("--num_units", required=True, type=int, help="units in the last hidden layer")
    parser.add_argument("--image_size", type=int, default=150, help="pixels a side")
    parser.add_argument("--batch_size", type=int, default=64, help="examples a replica")
    parser.add_argument("--epochs", type=int, default=10)
    return parser.parse_args()


def create_dataset(image_size, batch_size):
    def preprocess_data(image, label):
        image = tf.image.resize(image, (image_size, image_size))
        return tf.cast(image, tf.float32) / 255.0, label

    data, _ = tfds.load(name="horses_or_humans", as_supervised=True, with_info=True)
    train_data = data["train"].map(preprocess_data).shuffle(1000).batch(batch_size)
    validation_data = data["test"].map(preprocess_data).batch(batch_size)
    return train_data, validation_data


def create_model(image_size, num_units, learning_rate, momentum):
    inputs = tf.keras.Input(shape=(image_size, image_size, 3))
    hidden = inputs
    for filters in (16, 32, 64):
        hidden = tf.keras.layers.Conv2D(filters, (3, 3), activation="relu")(hidden)
        hidden = tf.keras.layers.MaxPooling2D((2, 2))(hidden)
    hidden = tf.keras.layers.Flatten()(hidden)
    hidden = tf.keras.layers.Dense(num_units, activation="relu")(hidden)
    outputs = tf.keras.layers.Dense(1, activation="sigmoid")(hidden)
    model = tf.keras.Model(inputs, outputs)
    model.compile(
        loss="binary_crossentropy",
        optimizer=tf.keras.optimizers.SGD(learning_rate=learning_rate, momentum=momentum),
        metrics=["accuracy"],
    )
    return model


def main():
    args = get_args()
    strategy = tf.distribute.MirroredStrategy()
    global_batch_size = args.batch_size * strategy.num_replicas_in_sync
    train_data, validation_data = create_dataset(args.image_size, global_batch_size)
    with strategy.scope():
        model = create_model(args.image_size, args.num_units, args.learning_rate, args.momentum)
    history = model.fit(train_data, epochs=args.epochs, validation_data=validation_data)
    hypertune.HyperTune().report_hyperparameter_tuning_metric(
        hyperparameter_metric_tag="accuracy",
        metric_value=history.history["val_accuracy"][-1],
        global_step=args.epochs,
    )
    model.save(os.environ["AIP_MODEL_DIR"])


if __name__ == "__main__":
    main()
