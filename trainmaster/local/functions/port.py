"""A port that stays ours while nobody listens on it."""

import contextlib
import socket


class ReservedPort:
    """A loopback port bound but not listened on: nobody else is given it, and our child may listen on it.

    Linux lets several sockets with SO_REUSEADDR bind one port as long as none of them but one listens;
    gunicorn sets that option. Connecting before the child listens is refused, as it should be.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def answers(self) -> bool:
        """Whether something listens. Does not block for longer than a moment."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.number), timeout=0.5):
            return True
        return False

    def close(self) -> None:
        self._socket.close()
