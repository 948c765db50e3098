"""The way of unmodified Google clients into the stack: an HTTPS proxy on loopback that answers for Google's host names.

A client in a replica asks for `https://storage.googleapis.com` as it does on Vertex AI. Its environment names this
proxy and a certificate authority of the stack's own, so its TLS connection ends here, and the bytes are forwarded to the local service.
"""

from trainmaster.local.gateway.authority import Authority
from trainmaster.local.gateway.proxy import Gateway
from trainmaster.local.gateway.routes import Backend

__all__ = ["Authority", "Backend", "Gateway"]
