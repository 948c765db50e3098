"""A program read with `ast`: its modules, the order of its calls, their guards and the origins of values.

Nothing here executes or imports what it reads.
"""
