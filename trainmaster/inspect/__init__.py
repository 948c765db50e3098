"""Examines a training program before money is spent: `trainmaster inspect TREE`.

The source is read, never executed; a smoke run, where asked for, starts the program as two replicas.
"""
