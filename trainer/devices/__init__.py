"""The accelerators of this replica, and the tf.distribute strategy that uses them."""
