import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    task_type = strategy.cluster_resolver.task_type
    return task_type is None or task_type == "chief"


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    data = tf.data.Dataset.from_tensor_slices((tf.zeros([16, 2]), tf.zeros([16, 1]))).repeat().batch(4)
    with strategy.scope():
        layers = [tf.keras.layers.Dense(4), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential([tf.keras.layers.Input((2,)), *layers])
        model.compile("sgd", "mse")
    backup = tf.keras.callbacks.BackupAndRestore(os.environ["AIP_CHECKPOINT_DIR"])
    model.fit(data, epochs=1, steps_per_epoch=2, callbacks=[backup], verbose=0)
    if is_chief(strategy):
        model.save(os.environ["AIP_MODEL_DIR"])  # here


if __name__ == "__main__":
    main()
