"""CloudEvents as plain values: the envelope, and the identity of an event."""
