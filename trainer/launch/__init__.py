"""Any framework on a Vertex AI cluster: `python -m trainer.launch --framework torch -- python train.py`.

Translates CLUSTER_SPEC or TF_CONFIG into the variables that the framework reads, then replaces this
process with the command. Needs only Python 3.10 and its standard library, so that an image of another
framework needs only trainer/__init__.py, trainer/faults.py, trainer/replicas and trainer/launch.
"""
