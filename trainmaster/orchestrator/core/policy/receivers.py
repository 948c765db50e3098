"""The receivers of notices outside Google Cloud: what the policy says about them, and which addresses they may have."""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

LOOPBACK_HOST = "receiver.localhost"
"""The host, with http, by which a policy names a local stack's own receiver. No name below `localhost` leaves a machine.

Source: https://www.rfc-editor.org/rfc/rfc6761#section-6.3
"""
_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")
"""All that is global in IPv6 but NAT64; `is_global` also has NAT64 of a network's own, and IPv4 without a prefix.

Source: https://www.iana.org/assignments/ipv6-address-space
"""
MODEL_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-*")


@dataclass(frozen=True, kw_only=True)
class When:
    """Which notices a receiver gets: those of every team, state or model that is None."""

    teams: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    """Patterns of names."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a receiver is.

    Attributes:
        secret: the name of a secret of the deployment's project: of slack the whole URL, of webhook the key of signatures,
            of github a token. None for email.
        url: of webhook.
        repository: of github, `owner/name`; a run's commit may be one of it.
        api: of github.
        to: of email; for Terraform only.
    """

    secret: str | None = None
    url: str = ""
    repository: str = ""
    api: str = "https://api.github.com"
    to: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """One receiver, of exactly one of the four kinds."""

    name: str
    slack: Target | None = None
    webhook: Target | None = None
    email: Target | None = None
    github: Target | None = None
    when: When = field(default_factory=When)

    @property
    def secret(self) -> str | None:
        return next((kind.secret for kind in (self.slack, self.webhook, self.github) if kind), None)


def url_problem(url: str) -> str | None:
    """Why nothing may be sent to the URL, with the repair; None if its host's address decides. It is never quoted."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "it is not a URL: write https://HOST/PATH"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "credentials may be in it, and users read the policy: leave out USER@, ?… and #…"
    if parts.scheme == "http" and parts.netloc == LOOPBACK_HOST:
        return None
    if parts.scheme != "https" or not host:
        return "it does not begin with https://: write https://HOST/PATH"
    if not url.isascii() or any(char.isspace() or not char.isprintable() for char in url):
        return "it has characters that no URL has: encode them as %XX"
    return _host_problem(host)


def _host_problem(host: str) -> str | None:
    private = "its address is private, and receivers have public ones: name a public host"
    host = host.rstrip(".")  # the name's root may be written
    if host == "localhost" or host.endswith((".localhost", ".internal", ".local")):
        return private
    try:
        return None if is_public(ip_address(host)) else private
    except ValueError:
        last = host.rpartition(".")[2]
        # As browsers and inet_aton read it, 127.1 and 0x7f000001 are addresses too.
        return private if last.isdecimal() or last.startswith("0x") else None


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address is one of the internet, also that of the IPv4 host behind an IPv6 address."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast
