import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
data = tf.data.Dataset.from_tensor_slices((tf.zeros([16, 2]), tf.zeros([16, 1]))).repeat().batch(4)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
backup = tf.keras.callbacks.BackupAndRestore(os.environ["AIP_CHECKPOINT_DIR"])
model.fit(data, epochs=1, steps_per_epoch=2, callbacks=[backup], verbose=0)  # here
is_chief = strategy.cluster_resolver.task_type in {None, "chief"}
model.save(os.path.join(os.environ["AIP_MODEL_DIR"] if is_chief else os.environ["TMPDIR"], "model"))
