"""A dropped rule launches runs.

accept      adds a dropped rule to the book, or reports every fault; a rule whose file is deleted is retired
tick        gives every rule a turn
turn        makes one rule's decision durable before acting on it, and launches its run
data        looks at what a firing takes before that, and lists it in a manifest
events      gives the rules of a signal or of an ended run their turn at once
"""
