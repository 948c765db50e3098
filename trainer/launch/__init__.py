"""Any framework on a Vertex AI cluster: `python -m trainer.launch --framework torch -- python train.py`.

What the service says of the cluster, in CLUSTER_SPEC or TF_CONFIG, becomes the variables that the
framework reads; then this process becomes the command. Needs Python 3.10 and its standard library
alone, so that an image of another framework takes trainer/{__init__,cluster,cluster_variable,faults}.py
and trainer/launch and nothing else.
"""
