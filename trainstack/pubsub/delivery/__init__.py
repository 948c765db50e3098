"""Delivery of one subscription: waiting messages, leases, and dead-lettering."""
