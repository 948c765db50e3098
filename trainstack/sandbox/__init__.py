"""Confines a program and everything that it starts: its processes, its files and its network (Linux only).

`python .../sandbox/__main__.py PLAN` runs one program in a confinement; the other modules except `probe` and `network`
run inside that process, so they import almost nothing.
"""
