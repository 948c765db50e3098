"""Access control lists: what requests say about them, their projection in answers, and the methods of their entries.

Source: https://cloud.google.com/storage/docs/json_api/v1/objectAccessControls and its siblings
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from trainstack.iam.authorization import bucket_of, has
from trainstack.iam.principals import caller
from trainstack.storage import acl
from trainstack.storage.acl import Entries
from trainstack.storage.api.call import Call, Json, change_bucket, json_answer
from trainstack.storage.authorization import may_call
from trainstack.storage.objects.errors import RefusedError, invalid
from trainstack.storage.objects.records import BucketRecord, ObjectRecord

_PAGE = "https://cloud.google.com/storage/docs/uniform-bucket-level-access"
_PREDEFINED = {
    "acl": ("predefinedAcl", "destinationPredefinedAcl"),
    "defaultObjectAcl": ("predefinedDefaultObjectAcl",),
}
_WITH_LISTS = ("storage#bucket", "storage#object")
_INSERT, _UPDATE = "insert legacy ACL for an object", "update access control for an object"
_UPDATE_BUCKET = "use ACL API to update bucket policy"


def _refuse_uniform(bucket: BucketRecord, what: str) -> None:
    """Raises `RefusedError` (400) with the service's sentence, as its clients report it, where access is uniform."""
    if acl.is_uniform(bucket):
        raise invalid(f"Cannot {what} when uniform bucket-level access is enabled. Read more at {_PAGE}")


def _requested_entries(
    call: Call, bucket: BucketRecord, body: Json, what: str, field: str = "acl"
) -> Entries | None:
    """The list that a request asks for: a predefined one, or that in the field of its body.

    Raises:
        RefusedError: 400 for a list that the bucket cannot have, 412 for a public one that it prevents.
    """
    name, listed = next(filter(None, map(call.query.get, _PREDEFINED[field])), ""), body.get(field)
    if not name and (listed is None or (not listed and acl.is_uniform(bucket))):
        return None
    _refuse_uniform(bucket, what)
    of = "bucket" if field == "acl" and what == _UPDATE_BUCKET else "object"
    entries = acl.predefined_list(name, bucket.project, of) if name else acl.entries_from(listed, of)
    acl.check_public(bucket, entries)
    return entries


def new_access(call: Call, bucket_name: str, body: Json) -> dict[str, Any]:
    """The `owner` and `acl` of an object's record; nothing where access is uniform. Raises as `_requested_entries`."""
    bucket = call.store.bucket(bucket_name)
    entries = _requested_entries(call, bucket, body, _INSERT)
    if acl.is_uniform(bucket):
        return {}
    owner, listed = caller().email, bucket.default_acl if entries is None else entries
    kept = {} if listed is None else {**listed, acl.owner_of(owner, bucket): "OWNER"}
    return {"owner": owner, "acl": kept}


def changed_acl(call: Call, before: ObjectRecord, body: Json) -> Entries:
    """The object's list after a patch or an update. Its owner stays. Raises as `_requested_entries`."""
    bucket = call.store.bucket(before.bucket)
    entries = _requested_entries(call, bucket, body, _UPDATE)
    if entries is None:
        return before.acl
    may_call(call.service.grants, call.store, "storage.objectAccessControls.patch", call.path, call.query)
    return {**entries, acl.owner_of(before.owner, bucket): "OWNER"}


def with_lists(call: Call, bucket: BucketRecord, body: Json) -> BucketRecord:
    """The bucket with the lists that the request asks for. Raises as `_requested_entries`."""
    entries = _requested_entries(call, bucket, body, _UPDATE_BUCKET)
    listed = _requested_entries(call, bucket, body, _UPDATE_BUCKET, "defaultObjectAcl")
    if "bucket" in call.path and (entries is not None or listed is not None):
        may_call(call.service.grants, call.store, "storage.bucketAccessControls.patch", call.path, call.query)
    if entries is not None:
        bindings = acl.bindings_with(call.service.bindings(bucket), entries, bucket.project)
        bucket = replace(bucket, bindings=bindings)
    return bucket if listed is None else replace(bucket, default_acl=listed)


def add_lists(call: Call, tree: Mapping[str, Any]) -> None:
    """Add owners and lists to an answer's resources, as far as the caller may see them and access is not uniform."""
    for resource in tree.get("items", [tree.get("resource", tree)]):
        bucket = call.store.catalog.find_bucket(resource.get("bucket") or resource.get("name", ""))
        if bucket and not acl.is_uniform(bucket) and resource.get("kind") in _WITH_LISTS:
            resource.update(_access_json(call, bucket, resource))


def _access_json(call: Call, bucket: BucketRecord, resource: Mapping[str, Any]) -> Json:
    kind, name = resource["kind"].removeprefix("storage#"), resource["name"]
    place = bucket_of(bucket.name, name if kind == "object" else None)
    if not has(call.service.grants, f"storage.{kind}s.getIamPolicy", place):
        return {}
    if kind == "bucket":
        owner, lists = "", {"acl": acl.bucket_acl(bucket), "defaultObjectAcl": acl.default_acl(bucket)}
    else:
        stored = call.store.catalog.find_any(bucket.name, name, resource["generation"])
        owner, lists = (stored.owner, {"acl": acl.object_acl(stored, bucket)}) if stored else ("", {})
    shown = {
        field: [acl.entry_json(*entry, kind if field == "acl" else "object") for entry in entries.items()]
        for field, entries in lists.items()
    }
    return {"owner": {"entity": acl.owner_of(owner, bucket)}, **shown}


async def list_all(call: Call) -> Response:
    entries = await _read(call)
    items = [_entry(call, entity, entries) for entity in entries]
    return json_answer({"kind": f"storage#{_kind(call)}AccessControls", "items": items})


async def get(call: Call) -> Response:
    return json_answer(_entry(call, call.path["entity"], await _read(call)))


async def change(call: Call) -> Response:
    """Insert, replace or remove an entry. A patch or an update is of one that is there, and an owner's stays."""
    is_removed, is_new = call.request.method == "DELETE", "entity" not in call.path
    body = {} if is_removed else await call.json(f"{_kind(call).title()}AccessControl")
    entity = str(body.get("entity")) if is_new else call.path["entity"]

    def role_after(before: Entries) -> str:
        role = "" if is_new else _entry(call, entity, before)["role"]
        return "" if is_removed else str(body.get("role", role))

    entries = await _change(call, entity, role_after)
    return Response(status_code=204) if is_removed else json_answer(_entry(call, entity, entries))


def _kind(call: Call) -> str:
    """Whether the entries are those of a `bucket` or of an `object`."""
    is_default = call.request.url.path.split("/")[5] == "defaultObjectAcl"
    return "object" if "object" in call.path or is_default else "bucket"


def _entry(call: Call, entity: str, entries: Entries) -> Json:
    """The entry's resource. Raises `RefusedError` (404) if the entity has none."""
    if entity not in entries:
        raise RefusedError(404, "notFound", f"The access control list has no entry of {entity!r}.")
    place = {key: call.path[key] for key in ("bucket", "object") if key in call.path}
    return acl.entry_json(entity, entries[entity], _kind(call), **place)


def _entries_of(call: Call, bucket: BucketRecord) -> Entries:
    return acl.bucket_acl(bucket) if _kind(call) == "bucket" else acl.default_acl(bucket)


async def _read(call: Call) -> Entries:
    bucket = call.store.bucket(call.path["bucket"])
    is_object = "object" in call.path
    _refuse_uniform(bucket, f"get legacy ACL for {'an object' if is_object else 'a bucket'}")
    return (
        acl.object_acl(await call.stored_object(call.target()), bucket)
        if is_object
        else _entries_of(call, bucket)
    )


async def _change(call: Call, entity: str, role_after: Callable[[Entries], str]) -> Entries:
    """The list in the path once the entity has that role in it, or no entry for an empty one."""

    def rows(before: Entries) -> list[dict[str, str]]:
        entries = {**before, entity: role_after(before)}
        return [{"entity": who, "role": role} for who, role in entries.items() if role]

    def change_object(before: ObjectRecord) -> ObjectRecord:
        listed = rows(acl.object_acl(before, call.store.bucket(before.bucket)))
        return replace(before, acl=changed_acl(call, before, {"acl": listed}))

    def change_lists(bucket: BucketRecord, _now_us: int) -> BucketRecord:
        field = "acl" if _kind(call) == "bucket" else "defaultObjectAcl"
        return with_lists(call, bucket, {field: rows(_entries_of(call, bucket))})

    if "object" in call.path:
        await call.service.settle(target := call.target())
        return call.store.patch(target, change_object).acl
    return _entries_of(call, change_bucket(call, change_lists))
