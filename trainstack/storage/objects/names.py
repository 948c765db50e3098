"""The allowed names of buckets and objects, and the object names that a file can have."""

import os
import re

MAX_OBJECT_NAME_BYTES = 1024
_MAX_BUCKET_PART = 63
_LAST_CODE_POINT = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000
_MAX_COMPONENT_BYTES = 255  # NAME_MAX of every usual Linux file system

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def bucket_fault(name: str) -> str:
    """Why a bucket cannot have this name; empty if it can.

    Source: https://cloud.google.com/storage/docs/buckets#naming
    """
    if not _BUCKET.fullmatch(name):
        return (
            f"Invalid bucket name: {name!r}. It must have 3 to 63 characters (222 with dots) of a-z, 0-9, '-', '_' and '.',"
            " and begin and end with a letter or digit."
        )
    if any(not 0 < len(part) <= _MAX_BUCKET_PART for part in name.split(".")):
        return f"Invalid bucket name: {name!r}. Each part between dots must have 1 to 63 characters."
    if _ADDRESS.fullmatch(name):
        return f"Invalid bucket name: {name!r}. It must not look like an IP address."
    if name.startswith("goog") or "google" in name:
        return f"Invalid bucket name: {name!r}. It must not begin with 'goog' or contain 'google'."
    return ""


def object_fault(name: str) -> str:
    """Why an object cannot have this name; empty if it can.

    Source: https://cloud.google.com/storage/docs/objects#naming
    """
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return f"Invalid object name: {name!r} is not valid Unicode."
    if not 0 < size <= MAX_OBJECT_NAME_BYTES:
        return f"Invalid object name: it has {size} bytes in UTF-8; 1 to {MAX_OBJECT_NAME_BYTES} are allowed."
    if name in {".", ".."}:
        return f"Invalid object name: {name!r} is reserved."
    if "\r" in name or "\n" in name:
        return f"Invalid object name: {name!r} contains a carriage return or line feed."
    if name.startswith(".well-known/acme-challenge/"):
        return f"Invalid object name: {name!r} must not begin with '.well-known/acme-challenge/'."
    return ""


def is_plain(name: str) -> bool:
    """Whether the name, as a relative path, is unique to this object, so that the object can be a plain file."""
    return not _CONTROL.search(name) and all(
        part not in {"", ".", ".."} and len(os.fsencode(part)) <= _MAX_COMPONENT_BYTES
        for part in name.split("/")
    )


def folder_of(name: str) -> str:
    """The name up to and including its last slash; empty for a name without one."""
    return name[: name.rfind("/") + 1]


def after(prefix: str) -> str:
    """The smallest name that sorts after every name with this prefix, in UTF-8 byte order.

    Code points sort like their UTF-8 bytes. The prefix must not be empty.
    """
    last = ord(prefix[-1])
    if last == _LAST_CODE_POINT:
        return prefix + chr(last)  # nothing follows the last code point; object names do not contain it
    following = _AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1  # surrogates have no UTF-8 form
    return prefix[:-1] + chr(following)
