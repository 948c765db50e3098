"""Rules that start runs: rule -> arrivals and signals -> decision -> firing. Pure functions on values.

condition    what a rule can watch; `schedule` reads cron expressions and time zones
rule, book   a valid rule; all accepted rules, and loops in which rules would start each other forever
reading      a dropped file: the rule in it, or all of its faults; `request_check` checks its request
filling      placeholders of a request and the values for them
arrivals     finalized data objects, and the batches in which they are kept
signals      events that may fire rules at once: an image, an alert, a notice, an order
state        what one rule remembers, and the status that its user sees
waiting      the objects that wait for a firing: each counted once, and what a firing takes of them
decision     whether a rule fires now; `firing` has the firing that it decides on, and its request
"""
