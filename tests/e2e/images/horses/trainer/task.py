"""Trains a small network on horses_or_humans and reports to the study, in the steps and calls of Google's codelab.

https://codelabs.developers.google.com/vertex_hyperparameter_tuning, read 2026-11.
It differs in two values that make it small: two epochs, and images of 32 pixels; and it saves its model,
which the codelab leaves out, where Vertex AI says.
"""

import argparse
import os

import hypertune
import tensorflow as tf
import tensorflow_datasets as tfds

NUM_EPOCHS = 2
IMAGE_SIZE = (32, 32)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning_rate", required=True, type=float, help="learning rate")
    parser.add_argument("--momentum", required=True, type=float, help="SGD momentum value")
    parser.add_argument("--num_neurons", required=True, type=int, help="units in the last hidden layer")
    return parser.parse_args()


def preprocess_data(image, label):
    image = tf.image.resize(image, IMAGE_SIZE)
    return tf.cast(image, tf.float32) / 255.0, label


def create_dataset(batch_size):
    data, _ = tfds.load(name="horses_or_humans", as_supervised=True, with_info=True)
    train_data = data["train"].map(preprocess_data).shuffle(1000).batch(batch_size)
    return train_data, data["test"].map(preprocess_data).batch(batch_size)


def create_model(num_neurons, learning_rate, momentum):
    inputs = tf.keras.Input(shape=(*IMAGE_SIZE, 3))
    hidden = inputs
    for filters in (16, 32, 64):
        hidden = tf.keras.layers.Conv2D(filters, (3, 3), activation="relu")(hidden)
        hidden = tf.keras.layers.MaxPooling2D((2, 2))(hidden)
    hidden = tf.keras.layers.Flatten()(hidden)
    hidden = tf.keras.layers.Dense(num_neurons, activation="relu")(hidden)
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
    train_data, validation_data = create_dataset(64 * strategy.num_replicas_in_sync)
    with strategy.scope():
        model = create_model(args.num_neurons, args.learning_rate, args.momentum)
    history = model.fit(train_data, epochs=NUM_EPOCHS, validation_data=validation_data)
    hypertune.HyperTune().report_hyperparameter_tuning_metric(
        hyperparameter_metric_tag="accuracy",
        metric_value=history.history["val_accuracy"][-1],
        global_step=NUM_EPOCHS,
    )
    model.save(os.environ["AIP_MODEL_DIR"])


if __name__ == "__main__":
    main()
