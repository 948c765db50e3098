"""What the process that replicas are forked from loads, once for all of them; import nothing else from here."""

import gc

gc.disable()  # imports leave little garbage

import keras  # noqa: E402, F401  # needs the line above
import tensorboard.summary  # type: ignore[import-untyped]  # noqa: E402, F401  # needs the line above
import tensorflow as tf  # noqa: E402
import tensorflow_datasets as tfds  # noqa: E402

tf.keras.layers  # noqa: B018  # loads tf_keras
tfds.list_builders(with_community_datasets=False)  # loads the definition of every data set
# Otherwise each replica's collections would visit all of it, and copy every page that they touch.
gc.freeze()
gc.enable()
