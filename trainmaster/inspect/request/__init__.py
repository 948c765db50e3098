"""What a request asks of the program: flags, metrics, variables and replicas, read from any of its dialects.

The orchestrator checks requests; here only what the program must fit is read, and nothing is judged.
"""
