"""A request's target object and preconditions, which are checked against the live object."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainstack.storage.objects.errors import RefusedError, condition_not_met, invalid
from trainstack.storage.objects.records import ObjectRecord

_MAX_INT64 = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Preconditions:
    """A request's conditions on the live object.

    Generation 0 means "no live object". Source: https://cloud.google.com/storage/docs/request-preconditions
    """

    generation: int | None = None
    not_generation: int | None = None
    metageneration: int | None = None
    not_metageneration: int | None = None
    etags: frozenset[str] = frozenset()
    not_etags: frozenset[str] = frozenset()

    def check_write(self, live: ObjectRecord | None) -> None:
        """Raises `RefusedError` (412) if a condition does not hold."""
        if fault := self._mismatch(live) or self._unwanted_match(live):
            raise condition_not_met(fault)

    def check_read(self, live: ObjectRecord) -> None:
        """Raises `RefusedError`: 412 if a Match condition does not hold, 304 if a NotMatch condition does not."""
        if fault := self._mismatch(live):
            raise condition_not_met(fault)
        if fault := self._unwanted_match(live):
            raise RefusedError(304, "notModified", f"Not modified: {fault}.")

    def _mismatch(self, live: ObjectRecord | None) -> str:
        generation, metageneration = _numbers(live)
        if self.generation not in (None, generation):
            return f"ifGenerationMatch is {self.generation}, the live generation {generation}"
        if self.metageneration is not None and (live is None or self.metageneration != metageneration):
            return f"ifMetagenerationMatch is {self.metageneration}, the live metageneration {metageneration}"
        if self.etags and not (live and self.etags & {"*", etag_of(live)}):
            return "If-Match names another ETag than the live one"
        return ""

    def _unwanted_match(self, live: ObjectRecord | None) -> str:
        generation, metageneration = _numbers(live)
        if self.not_generation == generation:
            return f"ifGenerationNotMatch is the live generation, {generation}"
        if live and self.not_metageneration == metageneration:
            return f"ifMetagenerationNotMatch is the live metageneration, {metageneration}"
        if live and self.not_etags & {"*", etag_of(live)}:
            return "If-None-Match names the live ETag"
        return ""


def _numbers(live: ObjectRecord | None) -> tuple[int, int]:
    return (live.generation, live.metageneration) if live else (0, 0)


@dataclass(frozen=True, kw_only=True)
class ObjectTarget:
    """An object that must exist, in this generation if one is named, and its preconditions.

    `soft_deleted` means that the generation must be soft-deleted; otherwise it is live or noncurrent.
    """

    bucket: str
    name: str
    generation: int | None
    conditions: Preconditions
    soft_deleted: bool = False


@dataclass(frozen=True, kw_only=True)
class Insertion:
    """The parameters of an upload, without the bytes. The hashes are empty if the client did not send them.

    `if_replaced` is the refusal if the object exists, for a caller that may create objects but not delete them. `owner` and
    `acl` are the record's.
    """

    bucket: str
    name: str
    content_type: str
    fields: Mapping[str, object]
    conditions: Preconditions
    md5: str = ""
    crc32c: str = ""
    if_replaced: RefusedError | None = None
    owner: str = ""
    acl: Mapping[str, str] = field(default_factory=dict)


def preconditions_from(
    query: Mapping[str, str], *, infix: str = "", headers: Mapping[str, str] = MappingProxyType({})
) -> Preconditions:
    """The preconditions of a query and its headers; `infix` is `Source` for a copy's conditions on its source.

    Raises:
        RefusedError: 400 for a value that is not an integer.
    """
    return Preconditions(
        generation=whole_number(query, f"if{infix}GenerationMatch"),
        not_generation=whole_number(query, f"if{infix}GenerationNotMatch"),
        metageneration=whole_number(query, f"if{infix}MetagenerationMatch"),
        not_metageneration=whole_number(query, f"if{infix}MetagenerationNotMatch"),
        etags=_etags(headers.get("if-match", "")),
        not_etags=_etags(headers.get("if-none-match", "")),
    )


def _etags(header: str) -> frozenset[str]:
    """Source: RFC 9110, 13.1"""
    return frozenset(part.strip().removeprefix("W/").strip('"') for part in header.split(",") if part.strip())


def whole_number(query: Mapping[str, str], key: str) -> int | None:
    """A query parameter as an integer; None if it is missing.

    Raises `RefusedError` (400) for any other value.
    """
    text = query.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > _MAX_INT64:
        raise invalid(f"Invalid value for {key}: {text!r}; expected an integer of at most 63 bits.")
    return int(text)


def etag_of(stored: ObjectRecord) -> str:
    """The ETag: changes with every generation and metageneration."""
    return f"{stored.generation:x}-{stored.metageneration:x}"
