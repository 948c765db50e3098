"""From a dropped rule to a launched run.

accept    a dropped rule becomes one of the book, or a report of every fault
inbox     drops that no event told are accepted, rules whose file is gone are retired
tick      arrivals are counted, and what is due fires
signal    an image, an alert, a notice or an order fires the rules that wait for it
turn      one rule's decision, made durable before anything is done about it
firing    a decided firing becomes a run
"""
