"""Checks a training program before you pay to run it: `trainmaster inspect TREE`.

The source is read, never executed; a smoke run, where asked for, starts the program as two replicas.
"""
