"""When a rule starts a run: rule -> arrival and signal -> decision -> firing. Values in, values out.

condition   what a rule may wait for
rule        a sound rule; `reading.rule_in` makes one of a drop, or every fault of it
book        every accepted rule, and the loops among them
arrival     data objects that came, and the batches in which they are kept
signal      events that may fire rules: an image, an alert, a notice, a manual call
state       what one rule remembers; `folded` counts arrivals into it
schedule    cron expressions and their time zones
decision    whether a rule fires now
filling     the places of its request, filled
status      what the user is told of a rule
"""
