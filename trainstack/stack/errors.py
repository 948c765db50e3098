"""Errors of a stack that does not start, or refuses a command.

The messages are for the user at the terminal; a retry does not help.

StackRefusedError
├── BadOptionsError     the command line is invalid
├── BadTopologyError    the topology file cannot be read, or is invalid
└── StateError          the state folder cannot be used
"""


class StackRefusedError(Exception):
    """The message says what is wrong, where, and what to do; each fault has its own line."""


class BadOptionsError(StackRefusedError):
    """The command line is invalid."""


class BadTopologyError(StackRefusedError):
    """The topology file cannot be read, or is invalid."""


class StateError(StackRefusedError):
    """The state folder cannot be used."""
