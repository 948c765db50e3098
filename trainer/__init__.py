"""The training image: `python -m trainer.task`. Imports nothing of the package trainmaster.

Importing this package chooses Keras 2 (tf_keras) for everything below it: Keras 3 does not support
MultiWorkerMirroredStrategy in `fit`. TensorFlow reads the choice when it is first imported, so
nothing here may import TensorFlow earlier, and a caller's own value does not count.
"""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # TensorFlow's notices about the machine; warnings stay
