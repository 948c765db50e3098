"""The client that reads logs."""

import socket

import pytest

from trainmaster.client.clients import log_reader


def test_reading_logs_asks_no_metadata_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        host, port = proxy.getsockname()
        for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", f"http://{host}:{port}")
        reader = log_reader(project="p", logging_host="http://127.0.0.1:9")
        assert reader.logger("x").name == "x"
        reader.close()
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):  # nothing was sent anywhere
            proxy.accept()
