"""The training image: `python -m trainer.task`. Imports nothing from the package trainmaster.

Importing this package selects Keras 2 (tf_keras): Keras 3 does not support MultiWorkerMirroredStrategy in `fit`.
TensorFlow reads the variable when it is first imported, so nothing here may import TensorFlow earlier. A value
that the caller has set is overwritten.
"""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "1"
)  # hides TensorFlow's messages about the machine, keeps warnings
