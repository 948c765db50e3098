"""Image classification with data sets of TFDS: one kind of workload."""
