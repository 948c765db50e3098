"""Documents, from bytes to validated plain values: YAML, JSON, schemas, faults, and dataclasses as documents."""
