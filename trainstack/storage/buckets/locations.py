"""The locations of buckets and their types.

Source: https://cloud.google.com/storage/docs/locations
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainstack.storage.objects.errors import invalid

_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("locations.toml").read_text())
_AREAS: Mapping[str, str] = _TABLE["areas"]
DEFAULT = "US"


def location_type(fields: Mapping[str, Any]) -> str:
    """`region`, `dual-region` or `multi-region`, of a bucket's fields.

    Raises:
        RefusedError: 400, there is no such location.
    """
    location = str(fields.get("location", DEFAULT)).upper()
    if placement := fields.get("customPlacementConfig"):
        regions, area = placement["dataLocations"], _AREAS.get(location)
        known = all(region in _TABLE["region"] for region in regions) and len(set(regions)) > 1
        if area is None or not known or not all(region.startswith(area) for region in regions):
            raise invalid(f"The specified location constraint is not valid: {location} with {regions}.")
        return "dual-region"
    for kind in ("region", "multi-region", "dual-region"):
        if location in _TABLE[kind]:
            return kind
    raise invalid(f"The specified location constraint is not valid: {location!r}.")
