"""The keys of objects: enforced where a request has them, although the bytes are stored as they came.

Names of Cloud KMS keys are kept and shown; the stack has no Cloud KMS that would know the keys.

Sources: https://cloud.google.com/storage/docs/encryption/customer-supplied-keys and …/json_api/v1/status-codes#400-bad-request
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping

from trainstack.storage.api.call import Call
from trainstack.storage.buckets.settings import DEFAULT_LOCATION
from trainstack.storage.objects.errors import RefusedError, condition_not_met, invalid
from trainstack.storage.objects.records import ObjectRecord

FIELD = "customerEncryption"
_KMS = "x-goog-encryption-kms-key-name"
_KEY_NAME = re.compile(r"projects/[^/]+/locations/([^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
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


def new_encryption(call: Call, bucket_name: str) -> dict[str, object]:
    """The fields of a new object that say how it is encrypted: by the request's key, or the bucket's default.

    Raises:
        RefusedError: 400 for a key that it cannot have, 412 for a kind of encryption that the bucket restricts.
    """
    bucket, hashed = call.store.bucket(bucket_name), key_hash(call.request.headers)
    given = (
        call.query.get("kmsKeyName"),
        call.query.get("destinationKmsKeyName"),
        call.request.headers.get(_KMS),
    )
    name = next(filter(None, given), "")
    if name and hashed:
        raise invalid("An object has a key of Cloud KMS or a customer-supplied one, not both.")
    name = name or (not hashed and bucket.setting("encryption", "defaultKmsKeyName")) or ""
    kind = "customerSupplied" if hashed else "customerManaged" if name else "googleManaged"
    config = f"{kind}EncryptionEnforcementConfig"
    if bucket.setting("encryption", config, "restrictionMode") == "FullyRestricted":
        raise condition_not_met(f"the bucket's {config} restricts this encryption of new objects")
    if not name:
        return encryption_field(hashed)
    match, location = _KEY_NAME.fullmatch(name), str(bucket.setting("location") or DEFAULT_LOCATION).lower()
    if not match or match[1].lower() != {"eu": "europe"}.get(location, location):
        expected = f"projects/P/locations/{location}/keyRings/R/cryptoKeys/K, in the bucket's location"
        raise invalid(f"Invalid Cloud KMS key: {name!r:.300}; expected {expected}.")
    return {"kmsKeyName": f"{name}/cryptoKeyVersions/1"}


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
