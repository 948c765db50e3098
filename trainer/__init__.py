"""The training image: `python -m trainer.task`. Imports nothing from the package trainmaster.

Importing this package makes `tf.keras` Keras 2 (tf_keras), which traces and trains faster than Keras 3 on CPUs.
TensorFlow reads the variable when it is first imported, so nothing here may import TensorFlow earlier.
"""

import os

STARTED_WITH = dict(os.environ)  # a program of another framework, which trainer.launch starts, gets this
os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # hides messages about the machine, keeps warnings
