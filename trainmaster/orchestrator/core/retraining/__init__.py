"""When a rule starts a run: rule -> arrival and signal -> decision -> firing. Values in, values out.

condition    what a rule may wait for; `schedule` reads cron expressions and time zones
rule, book   a sound rule; every accepted one, and those that would start each other without end
reading      a dropped file: the rule in it, or every fault of it; `request_check` checks its request
filling      placeholders of a request and the values for them
arrivals     data objects that came, and the batches in which they are kept
signals      what happened once and may fire rules: an image, an alert, a notice, an order
state        what one rule remembers, and what its user is told of it
decision     whether a rule fires now; `firing` is what it decides, and its request
"""
