"""Child processes that always end with the stack that started them (Linux only).

Nothing is imported here: the watcher, which every stack starts, is in this package and needs only `family`.
"""
