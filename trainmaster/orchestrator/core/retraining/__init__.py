"""When a rule starts a run: rule -> arrival and signal -> decision -> firing. Values in, values out.

condition    what a rule may wait for
rule         a sound rule
reading      a dropped file: the rule in it, or every fault of it; request_check and samples check its request
book, loop   every accepted rule, and the rules that would start each other without end
arrival      data objects that came, and the batches in which they are kept
signal       something that happened once: read by image_push, alert and notice
state        what one rule remembers; `folded` counts arrivals into it
schedule     cron expressions and their time zones
decision     whether a rule fires now; firing is what it decides
filling      places and the values for them; request fills those of one firing
status       what the user is told of a rule
"""
