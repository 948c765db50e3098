"""Ports for programs that are started a moment later."""

import socket

from trainstack.process.ports import free_port, free_ports, give_back


def test_a_port_of_before_is_given_again_while_it_is_free() -> None:
    (before,) = free_ports(1)
    give_back([before])
    assert free_port(before) == before
    other = free_port(before)  # reserved, although no process listens yet
    assert other != before
    give_back([before, other])
    with socket.create_server(("127.0.0.1", before)):
        other = free_port(before)
        assert other != before
    give_back([other])
