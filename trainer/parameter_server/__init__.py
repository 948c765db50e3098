"""Training with parameter servers: the chief coordinates, the ps hold the variables, the workers compute.

The chief runs `roles.CoordinatedTraining`; a worker or ps runs `roles.serve` until it is stopped. Every
worker takes batches at its own pace and none waits for another, so a worker may leave and return. The variables
of a lost ps are gone, and the job restarts from the last checkpoint.
Source: "Parameter server training with ParameterServerStrategy",
https://www.tensorflow.org/tutorials/distribute/parameter_server_training.

`fit` on a `DatasetCreator` is not used: it cannot stop within an epoch, nor begin there. At most four steps a worker
are under way, so that a checkpoint belongs to a known step.
"""
