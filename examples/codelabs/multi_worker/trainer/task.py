"""Train ResNet50 on cassava with MultiWorkerMirroredStrategy.

In the steps of https://codelabs.developers.google.com/vertex_multiworker_training, read 2026-11.
README.md beside this folder lists what differs, and why.
"""

import argparse
import os

import tensorflow as tf
import tensorflow_datasets as tfds


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--image_size", type=int, default=300, help="pixels a side")
    parser.add_argument("--batch_size", type=int, default=64, help="examples a replica")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--weights", default="imagenet", help="imagenet, random or a file")
    parser.add_argument(
        "--model_dir", default=os.environ.get("AIP_MODEL_DIR"), help="where to save the model"
    )
    return parser.parse_args()


def create_dataset(image_size, batch_size):
    def preprocess_data(image, label):
        image = tf.image.resize(image, (image_size, image_size))
        return tf.cast(image, tf.float32) / 255.0, label

    data, info = tfds.load(name="cassava", as_supervised=True, with_info=True)
    train_data = data["train"].map(preprocess_data, num_parallel_calls=tf.data.AUTOTUNE)
    train_data = train_data.shuffle(1000).batch(batch_size).prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return train_data.with_options(options), info.features["label"].num_classes


def create_model(number_of_classes, weights):
    weights = None if weights == "random" else weights
    base_model = tf.keras.applications.ResNet50(weights=weights, include_top=False)
    hidden = tf.keras.layers.GlobalAveragePooling2D()(base_model.output)
    hidden = tf.keras.layers.Dense(1016, activation="relu")(hidden)
    predictions = tf.keras.layers.Dense(number_of_classes, activation="softmax")(hidden)
    model = tf.keras.Model(inputs=base_model.input, outputs=predictions)
    model.compile(
        loss="sparse_categorical_crossentropy",
        optimizer=tf.keras.optimizers.Adam(0.0001),
        metrics=["accuracy"],
    )
    return model


def _is_chief(task_type):
    return task_type in ("chief", None)


def write_filepath(filepath, task_type, task_id):
    """The path that this replica saves to: every replica must save, and only the chief's model is kept."""
    if _is_chief(task_type):
        return filepath
    dirpath, base = os.path.split(filepath.rstrip("/"))
    temp_dir = os.path.join(dirpath, f"workertemp_{task_id}")
    tf.io.gfile.makedirs(temp_dir)
    return os.path.join(temp_dir, base)


def main():
    args = get_args()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    global_batch_size = args.batch_size * strategy.num_replicas_in_sync
    train_data, number_of_classes = create_dataset(args.image_size, global_batch_size)
    with strategy.scope():
        model = create_model(number_of_classes, args.weights)
    model.fit(train_data, epochs=args.epochs)
    resolver = strategy.cluster_resolver
    model.save(write_filepath(args.model_dir, resolver.task_type, resolver.task_id))


if __name__ == "__main__":
    main()
