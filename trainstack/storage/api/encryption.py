"""Customer-supplied encryption keys: enforced, although the bytes are stored as they came.

Sources: https://cloud.google.com/storage/docs/encryption/customer-supplied-keys and …/json_api/v1/status-codes#400-bad-request
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping

from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.records import ObjectRecord

FIELD = "customerEncryption"
_KEY_BYTES = 32


def key_hash(headers: Mapping[str, str], prefix: str = "x-goog-encryption") -> str:
    """The SHA-256 of the request's key in base64; empty if it has none.

    Raises:
        RefusedError: 400, the three headers are not all there, or do not agree.
    """
    given = [headers.get(f"{prefix}-{part}", "") for part in ("algorithm", "key", "key-sha256")]
    if not any(given):
        return ""
    try:
        key = base64.b64decode(given[1], validate=True)
    except binascii.Error:
        key = b""
    hashed = base64.b64encode(hashlib.sha256(key).digest()).decode()
    if given[0] != "AES256" or len(key) != _KEY_BYTES or given[2] != hashed:
        raise RefusedError(
            400,
            "customerEncryptionKeySha256IsInvalid",
            "Missing a SHA256 hash of the AES256 encryption key, or it is not base64 encoded, or it does not match the"
            " encryption key.",
        )
    return hashed


def encryption_field(hashed: str) -> dict[str, object]:
    """The fields of an object that the key encrypts; none without a key."""
    return {FIELD: {"encryptionAlgorithm": "AES256", "keySha256": hashed}} if hashed else {}


def check_key(stored: ObjectRecord, hashed: str) -> None:
    """Raises `RefusedError` (400) unless this is the key of the object, or neither has one."""
    encryption = stored.fields.get(FIELD)
    if encryption == encryption_field(hashed).get(FIELD):
        return
    if encryption and hashed:
        reason, message = "customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect."
    else:
        reason = f"resource{'Is' if encryption else 'Not'}EncryptedWithCustomerEncryptionKey"
        not_ = "" if encryption else "not "
        message = f"The target object is {not_}encrypted by a customer-supplied encryption key."
    raise RefusedError(400, reason, message)
