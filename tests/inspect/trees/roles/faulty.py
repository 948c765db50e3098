import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # here
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((tf.zeros([16, 2]), tf.zeros([16, 1]))).batch(4)
model.fit(data, callbacks=[tf.keras.callbacks.BackupAndRestore(os.environ["AIP_CHECKPOINT_DIR"])])
is_chief = strategy.cluster_resolver.task_type == "chief"
model.save(os.environ["AIP_MODEL_DIR"] if is_chief else os.environ["TMPDIR"])
