"""What tells a request of this machine from one that a page of another site has a browser send.

Binding to loopback keeps other machines out, but not a web page in a browser on this one.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

GATEWAY_ADDRESS = "127.0.0.2"
"""Where the gateway's connections to the services come from: nothing that comes from there is the local user's own."""
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_GOOGLE = ".googleapis.com"
"""What the gateway's clients ask for. No page can claim such a host: it would have to be Google's own."""
_OWN_SITES = frozenset({"same-origin", "same-site", "none"})


def foreign(headers: Iterable[tuple[str, str]]) -> str:
    """Why these request headers come from outside this machine; empty when they do not.

    A foreign `Host` is DNS rebinding, a foreign `Origin` a cross-site request. Whatever a form or an image may ask
    for without an `Origin`, browsers mark with `Sec-Fetch-Site`: https://www.w3.org/TR/fetch-metadata/
    """
    for name, value in headers:
        match name.lower():
            case "host" if not _is_served(_host_of(f"//{value}")):
                return f"Host {value!r} is no loopback name; this emulator answers only to {sorted(LOOPBACK_HOSTS)}."
            case "origin" if _host_of(value) not in LOOPBACK_HOSTS:
                return f"Origin {value!r} is another site; a browser may call this emulator only from this machine."
            case "sec-fetch-site" if value not in _OWN_SITES:
                return f"Sec-Fetch-Site {value!r}: a browser may call this emulator only from this machine's pages."
    return ""


def address_of(host: str) -> str:
    """The base of URLs that lead a client back to the `Host` that it asked: through the gateway, or straight."""
    return f"https://{host}" if host.endswith(_GOOGLE) else f"http://{host}"


def _is_served(host: str) -> bool:
    return host in LOOPBACK_HOSTS or host.endswith(_GOOGLE)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
