"""Distinguishes this machine's requests from those that another site's page makes a browser send.

Binding to loopback keeps out other machines, but not a web page in a browser on this one.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

GATEWAY_ADDRESS = "127.0.0.2"
"""The source address of the gateway's connections to services: no request from there is the local user's."""
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_GOOGLE = ".googleapis.com"
"""The hosts that the gateway's clients request. No page can claim such a host: it would have to be Google's.
"""
_OWN_SITES = frozenset({"same-origin", "same-site", "none"})


def foreign(headers: Iterable[tuple[str, str]]) -> str:
    """Why these headers are those of a request from outside this machine; empty if they are not.

    A foreign `Host` is DNS rebinding, a foreign `Origin` a cross-site request. Requests of forms and images
    may lack an `Origin`; browsers mark them with `Sec-Fetch-Site`: https://www.w3.org/TR/fetch-metadata/
    """
    for name, value in headers:
        match name.lower():
            case "host" if not _is_served(_host_of(f"//{value}")):
                return f"Host {value!r} is not a loopback name; this emulator answers only to {sorted(LOOPBACK_HOSTS)}."
            case "origin" if _host_of(value) not in LOOPBACK_HOSTS:
                return f"Origin {value!r} is another site; a browser may call this emulator only from this machine."
            case "sec-fetch-site" if value not in _OWN_SITES:
                return f"Sec-Fetch-Site {value!r}: a browser may call this emulator only from this machine's pages."
    return ""


def address_of(host: str) -> str:
    """The base URL that leads a client back to the `Host` it requested: through the gateway or directly."""
    return f"https://{host}" if host.endswith(_GOOGLE) else f"http://{host}"


def _is_served(host: str) -> bool:
    return host in LOOPBACK_HOSTS or host.endswith(_GOOGLE)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
