"""Why a stack does not start, or does not do as it is told. All of them are for the person at the terminal; none is helped by trying again.

StackRefusedError
├── BadOptionsError      the command line asks for what cannot be
├── BadTopologyError     the topology file cannot be read, or says something impossible
└── StateError           the state folder cannot be used
"""


class StackRefusedError(Exception):
    """The message says what was wrong, where, and what to do; several faults stand on a line each."""


class BadOptionsError(StackRefusedError):
    """The command line asks for what cannot be."""


class BadTopologyError(StackRefusedError):
    """The topology file cannot be read, or says something impossible."""


class StateError(StackRefusedError):
    """The state folder cannot be used."""
