"""The data set: found or prepared, then read in the order and parts that each worker needs."""
