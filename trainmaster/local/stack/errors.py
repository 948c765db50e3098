"""Why a stack does not start, or does not do as it is told. All of them are for the person at the terminal; none is helped by trying again.

StackRefusedError
├── BadOptionsError      the command line asks for what cannot be
├── BadTopologyError     the topology file cannot be read, or says something impossible
├── StateError           the state folder cannot be used
├── ServiceError         a service cannot run, or refused a resource
├── FunctionsError       the functions cannot be staged or do not start
└── JobError             a job of the running stack cannot be dealt with as asked
"""


class StackRefusedError(Exception):
    """The message says what was wrong, where, and what to do; several faults stand on a line each."""


class BadOptionsError(StackRefusedError):
    """The command line asks for what cannot be."""


class BadTopologyError(StackRefusedError):
    """The topology file cannot be read, or says something impossible."""


class StateError(StackRefusedError):
    """The state folder cannot be used."""


class ServiceError(StackRefusedError):
    """A service cannot run, or refused a resource of the topology."""


class FunctionsError(StackRefusedError):
    """The functions cannot be staged, or one of them does not start."""


class JobError(StackRefusedError):
    """A job of the running stack cannot be dealt with as asked."""
