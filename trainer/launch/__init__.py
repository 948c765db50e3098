"""Any framework on a Vertex AI cluster: `python -m trainer.launch --framework torch -- python train.py`.

Translates CLUSTER_SPEC or TF_CONFIG into the variables that the framework reads, then replaces this
process with the command. Needs only Python 3.10 and its standard library, so that an image of another
framework needs only the files of trainer that docs/how-to/frameworks.md copies.

A process that replaces itself leaves nothing between the service and the program: signals, exit status and
output are the program's own.
"""
