"""Training with parameter servers: the chief coordinates, the ps hold the variables, the workers compute.

The chief runs `coordinator.train`; a worker or ps runs `server.serve` until it is ended. Every worker
takes batches at its own pace and none waits for another, so a worker may come and go; the variables
of a lost ps are gone, and the job begins again from the last checkpoint.
Source: "Parameter server training with ParameterServerStrategy",
https://www.tensorflow.org/tutorials/distribute/parameter_server_training.
"""
