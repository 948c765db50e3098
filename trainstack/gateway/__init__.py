"""The gateway, by which unmodified Google clients reach the stack: an HTTPS proxy on loopback that answers for Google's host names.

A client in a replica requests `https://storage.googleapis.com` as it does on Vertex AI. Its environment names
this proxy and the stack's certificate authority, so the proxy terminates its TLS connection and forwards the
bytes to the local service.
"""
