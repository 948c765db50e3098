"""Faults of a resource of the configuration, by the schema of Terraform's Google provider in provider.json."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.deploy.hcl import Block, arguments

DATA: Mapping[str, Any] = json.loads((Path(__file__).resolve().parent / "data/provider.json").read_text())
META = frozenset({"for_each", "count", "provider", "depends_on", "lifecycle"})
"""Terraform's own, legal in every resource: https://developer.hashicorp.com/terraform/language/meta-arguments"""
SINGULAR = {
    "command": "commands",
    "direct_vpc_network_interface": "direct_vpc_network_interfaces",
    "lifecycle_rule": "lifecycle_rules",
    "matches_prefix": "matches_prefixes",
    "matches_storage_class": "matches_storage_classes",
    "matches_suffix": "matches_suffixes",
    "matching_criteria": "matching_criterias",
    "method": "methods",
    "notification_channel_strategy": "notification_channel_strategies",
    "origin": "origins",
    "response_header": "response_headers",
}
"""Lists that the provider names in the singular, and Pulumi in the plural.

Source: https://github.com/hashicorp/terraform-provider-google, website/docs/r (read 2026-11)
"""
MADE_UP = frozenset({"name", "role_id", "account_id"})
"""Names that Pulumi makes up where none is given; in Terraform they are required.

Source: https://www.pulumi.com/docs/iac/concepts/resources/names/#autonaming (read 2026-11)
"""


def key_of(block: Block) -> str:
    """The block's key in the data."""
    return f"data.{block.type}" if block.kind == "data" else block.type


def faults_of(block: Block) -> list[str]:
    """Unknown and missing arguments, nested ones too, and values in place of blocks; empty for a sound resource.

    Raises:
        KeyError: the data has no such resource: add it to tests/judges/classes.py.
    """
    key, taken = key_of(block), DATA["resources"][key_of(block)]
    body = {name: value for name, value in block.body.items() if name not in META}
    unnamed = [f"{key}: {name} is missing" for name in sorted(MADE_UP & taken.keys() - body.keys())]
    return [*unnamed, *_faults(body, taken, key)]


def _faults(body: Mapping[str, Any], taken: Mapping[str, Any], at: str) -> Iterator[str]:
    given = {SINGULAR.get(name, name) for name, _ in arguments(body)}
    for name, known in taken.items():
        if known.get("required") and name not in given:
            yield f"{at}: {name} is missing"
    for name, blocks in arguments(body):
        known = None if name in SINGULAR.values() else taken.get(SINGULAR.get(name, name))
        if known is None:
            yield f"{at}: {name} is unknown"
        elif (blocks is None) is ("block" in known):
            yield f"{at}: {name} is {'a block' if 'block' in known else 'not a block'}"
        else:
            if blocks and len(blocks) > 1 and "list" not in known:
                yield f"{at}: {name} is given {len(blocks)} times"
            for inner in blocks or ():
                yield from _faults(inner, known["block"], f"{at}.{name}")
