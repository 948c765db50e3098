"""The local stack: Google Cloud's services, spoken on the wire by this machine. Imports nothing of the product it serves.

Every service is built alike: `server` binds a port and owns the lifecycle, `api` is the wire (routes or gRPC methods),
`service` decides, `store` keeps the state, `injections` says where injected failures strike, and `__main__` runs
the service alone. What they share stands here: `http`, `sqlite`, `outbox`, `publisher`, `instants`, `alone`.
"""
