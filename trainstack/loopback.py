"""Distinguishes this machine's requests from those that another site's page makes a browser send.

Binding to loopback keeps out other machines, but not a web page in a browser on this one.

The processes of functions load this file alone, without the package: it imports nothing from it.
"""

import os
from collections.abc import Iterable
from urllib.parse import urlsplit

GATEWAY_ADDRESS = "127.0.0.2"
"""The source address of the gateway's connections to services: no request from there is the local user's."""
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
HOSTS_VARIABLE = "TRAINMASTER_HOSTS"
"""Further names, separated by commas, by which clients reach the services: those of a container with published ports."""
_GOOGLE = ".googleapis.com"
"""The hosts that the gateway's clients request. No page can claim such a host: it would have to be Google's.
"""
_OWN_SITES = frozenset({"same-origin", "same-site", "none"})
_OTHER_PORTS = frozenset({"same-site"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def foreign(method: str, headers: Iterable[tuple[str, str]]) -> str:
    """Why a request is one that a page from elsewhere makes a browser send; empty if it is not.

    A foreign `Host` is DNS rebinding, a foreign `Origin` a cross-site request. Requests of forms and images
    may lack an `Origin`; browsers mark them with `Sec-Fetch-Site`: https://www.w3.org/TR/fetch-metadata/
    A page of another port of this machine may read, which its browser keeps from it, but change nothing: any program
    may serve pages here, for example of a notebook that was downloaded. Clients other than browsers send neither header.
    """
    values = {name.lower(): value for name, value in headers}
    host, origin, site = values.get("host"), values.get("origin"), values.get("sec-fetch-site")
    if host is not None and not _is_served(_host_of(f"//{host}")):
        return (
            f"Host {host!r} is not a loopback name; this emulator answers only to {sorted(own_hosts())}, "
            f"and to those that the variable {HOSTS_VARIABLE} names."
        )
    if origin is not None and _host_of(origin) not in own_hosts():
        return f"Origin {origin!r} is another site; a browser may call this emulator only from this machine."
    if site is not None and site not in _OWN_SITES:
        return f"Sec-Fetch-Site {site!r}: a browser may call this emulator only from this machine's pages."
    if method not in _READING and (origin not in (None, f"http://{host}") or site in _OTHER_PORTS):
        return f"Only this service's own pages, http://{host}, may change anything here; found Origin {origin!r}."
    return ""


def own_hosts() -> frozenset[str]:
    """The names by which this machine's clients may reach a service: those of loopback, and the variable's."""
    more = os.environ.get(HOSTS_VARIABLE, "").lower().split(",")
    return LOOPBACK_HOSTS.union(name.strip() for name in more) - {""}


def address_of(host: str) -> str:
    """The base URL that leads a client back to the `Host` it requested: through the gateway or directly."""
    return f"https://{host}" if host.endswith(_GOOGLE) else f"http://{host}"


def _is_served(host: str) -> bool:
    return host in own_hosts() or host.endswith(_GOOGLE)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
