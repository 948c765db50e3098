"""A program read with `ast`: its modules, the order of its calls, who is guarded and where values come from.

Nothing here executes or imports what it reads.
"""
