"""Runs, the queue, rules and champions as text, which both the command and the console show."""
