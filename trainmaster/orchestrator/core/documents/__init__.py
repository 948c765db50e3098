"""Bytes to a checked tree of plain values: YAML, JSON, schemas, faults, and dataclasses as documents."""
