"""`python -m trainer.task` on a machine whose processor counts as two devices; Replica runs it by this name."""

import runpy

import trainer  # noqa: F401  # chooses Keras before TensorFlow is loaded

import tensorflow as tf  # isort: skip

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
runpy.run_module("trainer.task", run_name="__main__", alter_sys=True)
