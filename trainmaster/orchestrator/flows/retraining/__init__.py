"""From a dropped rule to a launched run.

accept      a dropped rule becomes one of the book, or a report of every fault; a rule whose file is gone is retired
tick        gives every rule a turn
turn        one rule's decision, made durable before anything is done about it, and its run; signals cause turns too
"""
