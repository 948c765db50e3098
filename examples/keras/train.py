"""Train a small Keras classifier and leave it, with its metrics, where Vertex AI says.

It learns whether a point of the square from -1 to 1 lies in the disc of half its area.
"""

import argparse
import json
import os

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--learning_rate", type=float, default=0.03)
args = parser.parse_args()

points = np.random.default_rng(0).uniform(-1, 1, (4000, 2)).astype("float32")
inside = (points**2).sum(axis=1) < 2 / np.pi

model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(16, activation="tanh"),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(
    optimizer=tf.keras.optimizers.Adam(args.learning_rate),
    loss="binary_crossentropy",
    metrics=["accuracy"],
)
history = model.fit(
    points, inside.astype("float32"), epochs=args.epochs, batch_size=64, validation_split=0.2, verbose=2
)

model_dir = os.environ["AIP_MODEL_DIR"]  # gs://BUCKET/…/model/
model.save(os.path.join(model_dir, "model.keras"))
with tf.io.gfile.GFile(os.path.join(model_dir, "metrics.json"), "w") as file:
    json.dump({"val_accuracy": history.history["val_accuracy"][-1]}, file)
