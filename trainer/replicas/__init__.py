"""The cluster: who this replica is, whether its peers are alive, and how all of them stop together."""
