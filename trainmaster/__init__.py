"""Runs training jobs on Vertex AI from events. In Python, `from trainmaster import connect`: docs/reference/python.md"""

TYPE_CHECKING = False  # importing `typing` would take longer than the rest
if TYPE_CHECKING:
    from trainmaster.client.connection import Connection, NotFound, RequestRefused, RunFailed, connect
else:

    def __getattr__(name: str) -> object:
        """A public name, imported when it is first used."""
        if name not in __all__:
            raise AttributeError(f"module 'trainmaster' has no attribute {name!r}")
        from trainmaster.client import connection

        return getattr(connection, name)


__all__ = ["Connection", "NotFound", "RequestRefused", "RunFailed", "connect"]
