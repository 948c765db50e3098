"""A bucket's writable fields: checked, and with the times that the service adds.

Sources: https://cloud.google.com/storage/docs/json_api/v1/buckets, and for each field the page that it is named after.
"""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from trainstack.instants import format_instant
from trainstack.storage.objects.errors import RefusedError, invalid

Fields = dict[str, Any]

_SCHEMA: Mapping[str, Any] = json.loads(Path(__file__).with_name("bodies.schema.json").read_text())
_LOCATIONS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("locations.toml").read_text())
"""Source: https://cloud.google.com/storage/docs/locations"""
DEFAULT_LOCATION = "US"
_FIXED = ("location", "customPlacementConfig", "hierarchicalNamespace")
_FINE_GRAINED = {"uniformBucketLevelAccess": {"enabled": False}}
_PERIODS = {"retentionPolicy": "retentionPeriod", "softDeletePolicy": "retentionDurationSeconds"}


def new_settings(body: Mapping[str, Any], now_us: int) -> Fields:
    """The fields of a new bucket, where access is not uniform unless the request asks for it.

    So it is in the service, but for projects whose organization enforces uniform access, as those created since May 2024
    do by default: https://cloud.google.com/resource-manager/docs/secure-by-default-organizations

    Raises:
        RefusedError: 400 for a value that the service or the stack does not take.
    """
    fields = _settled({"location": DEFAULT_LOCATION, **_fields_of(body)}, {}, now_us)
    fields["iamConfiguration"] = {**_FINE_GRAINED, **fields.get("iamConfiguration", {})}
    return fields


def changed_settings(before: Fields, body: Mapping[str, Any], now_us: int) -> Fields:
    """The fields after a change to those of the body.

    Raises:
        RefusedError: 400 for a value that the service does not take, 403 for less of a locked retention policy.
    """
    before = {**before, "location": str(before.get("location", DEFAULT_LOCATION)).upper()}
    after = {**{key: before[key] for key in _FIXED if key in before}, **_fields_of(body)}
    after["iamConfiguration"] = {**before.get("iamConfiguration", {}), **after.get("iamConfiguration", {})}
    if changed := [key for key in _FIXED if after.get(key) != before.get(key)]:
        raise invalid(f"Bucket.{changed[0]} cannot be changed: it is {before.get(changed[0])!r}.")
    return _settled(after, before, now_us)


def check_values(resource: str, body: Mapping[str, Any]) -> None:
    """Raises `RefusedError` (400) for values that no field of the resource can have."""
    if faults := [
        f"{'.'.join(map(str, each.path))}: {each.message}" for each in _validator(resource).iter_errors(body)
    ]:
        raise invalid(f"Invalid value for {resource}.{'; '.join(faults)[:1000]}")


@cache
def _validator(resource: str) -> Any:  # jsonschema's
    from jsonschema import Draft202012Validator  # takes long, and a stack may start without it

    return Draft202012Validator({**_SCHEMA, "$ref": f"#/{resource}"})


def _fields_of(body: Mapping[str, Any]) -> Fields:
    """The honoured fields of the body, without empty ones; names of places and classes in upper case."""
    names = _SCHEMA["Bucket"]["properties"]
    fields = {key: body[key] for key in names if body.get(key) not in (None, {}, [], "")}
    for key, period in _PERIODS.items():
        if isinstance(fields.get(key), dict) and str(fields[key].get(period)).isdecimal():
            fields[key] = {**fields[key], period: int(fields[key][period])}
    for key in fields.keys() & {"location", "storageClass"}:
        fields[key] = str(fields[key]).upper()
    if fields.keys() - {"location"}:
        check_values("Bucket", fields)
    if placement := fields.get("customPlacementConfig"):
        regions = sorted(region.upper() for region in placement["dataLocations"])
        fields["customPlacementConfig"] = {"dataLocations": regions}
    return fields


def _settled(fields: Fields, before: Mapping[str, Any], now_us: int) -> Fields:
    """The fields with what the service adds."""
    if fields.get("rpo") == "ASYNC_TURBO" and location_type(fields) != "dual-region":
        raise invalid(f"Turbo replication requires a dual-region, found a {location_type(fields)}.")
    location_type(fields)
    settled = {key: value for key, value in fields.items() if key not in _PERIODS}
    now = format_instant(now_us * 1000, digits=3)
    for key, period in _PERIODS.items():
        seconds, was = fields.get(key, {}).get(period), before.get(key, {})
        if was.get("isLocked") and (seconds or 0) < int(was[period]):
            raise RefusedError(403, "forbidden", f"Cannot reduce or remove {key}, which is locked.")
        if seconds is not None:
            settled[key] = _timed({**was, period: str(seconds)}, was, period, "effectiveTime", now)
    if autoclass := fields.get("autoclass"):
        was, is_on = before.get("autoclass", {}), autoclass.get("enabled", False)
        chosen = {"terminalStorageClass": autoclass.get("terminalStorageClass", "NEARLINE")} if is_on else {}
        timed = _timed({"enabled": is_on, **chosen}, was, "enabled", "toggleTime", now)
        times = ("terminalStorageClass", "terminalStorageClassUpdateTime")
        settled["autoclass"] = _timed(timed, was, *times, now) if is_on else timed
    for key, config in fields.get("encryption", {}).items():
        if isinstance(config, dict):
            was, mode = (
                before.get("encryption", {}).get(key, {}),
                {"restrictionMode": config["restrictionMode"]},
            )
            is_on = config["restrictionMode"] == "FullyRestricted"
            timed = _timed(mode, was, "restrictionMode", "effectiveTime", now) if is_on else mode
            settled["encryption"] = {**settled["encryption"], key: timed}
    return settled


def _timed(after: Fields, before: Fields, key: str, time_key: str, now: str) -> Fields:
    """A setting with the time of the last change of its `key`."""
    is_same = after.get(key) == before.get(key)
    return {**after, time_key: before.get(time_key, now) if is_same else now}


def location_type(fields: Mapping[str, Any]) -> str:
    """`region`, `dual-region` or `multi-region`, of a bucket's fields.

    Raises:
        RefusedError: 400, there is no such location.
    """
    location = str(fields.get("location", DEFAULT_LOCATION)).upper()
    if placement := fields.get("customPlacementConfig"):
        regions, area = placement["dataLocations"], _LOCATIONS["areas"].get(location)
        known = all(region in _LOCATIONS["region"] for region in regions) and len(set(regions)) > 1
        if area is None or not known or not all(region.startswith(area) for region in regions):
            raise invalid(f"The specified location constraint is not valid: {location} with {regions}.")
        return "dual-region"
    for kind in ("region", "multi-region", "dual-region"):
        if location in _LOCATIONS[kind]:
            return kind
    raise invalid(f"The specified location constraint is not valid: {location!r}.")
