"""What both the command and the console show of runs, the queue, rules and champions, as text."""
