"""What tells a request of this machine from one that a page of another site has a browser send.

Binding to loopback keeps other machines out, but not a web page in a browser on this one.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_OWN_SITES = frozenset({"same-origin", "same-site", "none"})


def foreign(headers: Iterable[tuple[str, str]]) -> str:
    """Why these request headers come from outside this machine; empty when they do not.

    A foreign `Host` is DNS rebinding, a foreign `Origin` a cross-site request. Whatever a form or an image may ask
    for without an `Origin`, browsers mark with `Sec-Fetch-Site`: https://www.w3.org/TR/fetch-metadata/
    """
    for name, value in headers:
        match name.lower():
            case "host" if _host_of(f"//{value}") not in LOOPBACK_HOSTS:
                return f"Host {value!r} is no loopback name; this emulator answers only to {sorted(LOOPBACK_HOSTS)}."
            case "origin" if _host_of(value) not in LOOPBACK_HOSTS:
                return f"Origin {value!r} is another site; a browser may call this emulator only from this machine."
            case "sec-fetch-site" if value not in _OWN_SITES:
                return f"Sec-Fetch-Site {value!r}: a browser may call this emulator only from this machine's pages."
    return ""


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
