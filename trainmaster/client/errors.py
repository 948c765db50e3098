"""The errors of reading and changing runs. Those of the official clients pass unchanged."""


class NotFound(Exception):
    """Nothing has that name; the message has the nearest names, or how to list them."""


class TimedOut(Exception):
    """What was waited for had not happened at the deadline; the message has the last state."""


class ClientRefused(Exception):
    """The service, or a check before it, refuses what was asked; the message has every fault."""


class Damaged(Exception):
    """A document or an object differs from what a record says; the message says how it differs."""
