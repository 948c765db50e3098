"""The local stack: Google Cloud's services, imitated on the wire by this machine.

It never imports the product.

Every service has the same parts: `server` binds a port and owns the lifecycle, `api` is the wire (routes or
gRPC methods), `service` decides, `store` keeps the state, `injections` says where injected failures strike,
and `__main__` runs the service alone. Shared modules are in this folder: `http`, `sqlite`, `outbox`,
`publisher`, `instants`, `alone`.
"""
