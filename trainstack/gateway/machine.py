"""Which addresses are this machine's: what listens there trusts local programs, as the stack's services do."""

import asyncio
import contextlib
import ipaddress
import socket


class OwnAddressError(Exception):
    """A job asked for an address of this machine."""


async def addresses_elsewhere(host: str, port: int) -> list[str]:
    """The addresses of a host, all of them elsewhere; none if it cannot be resolved here.

    Connect to one of these and not to the name, which may have other addresses the next time.

    Raises:
        OwnAddressError: it leads to this machine, or to its link, where cloud machines have their metadata server.
    """
    found: list[str] = []
    with contextlib.suppress(OSError, UnicodeError):
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = [str(info[4][0]) for info in infos]
    if any(map(_is_own, found)):
        raise OwnAddressError(
            f"{host}:{port} is an address of this machine, which jobs cannot reach; start the stack with "
            "--isolation none if they must"
        )
    return found


def _is_own(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_unspecified or ip.is_link_local or ip.is_multicast or _is_assigned(ip)


def _is_assigned(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an interface of this machine has the address: only such a one can be bound."""
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6  # noqa: PLR2004  the protocol's version
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((str(ip), 0))
        return True
    return False
