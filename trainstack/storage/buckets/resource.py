"""The bucket resource, and the roles and permissions of its IAM policy.

Sources: https://cloud.google.com/storage/docs/json_api/v1/buckets, …/docs/access-control/iam-roles and …/iam-permissions
"""

import base64
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainstack.iam.service import roles_from
from trainstack.project import project_number
from trainstack.storage.buckets.settings import DEFAULT_LOCATION, location_type
from trainstack.storage.objects.records import BucketRecord
from trainstack.storage.objects.resource import rfc3339

Bindings = Sequence[Mapping[str, Any]]

MEMBER = re.compile(
    r"all(?:Authenticated)?Users|(?:user|group|serviceAccount):[^\s:]+@[^\s:]+|(?:domain|project(?:Owner|Editor|Viewer)):[^\s:]+"
)
"""What can be granted a role. No account here is in a group or a domain."""
_ROLES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("roles.toml").read_text())
PERMISSIONS = frozenset(f"storage.{name}" for name in _ROLES["permissions"])
"""Those that a bucket's policy can give."""
ROLES = roles_from("storage", PERMISSIONS, _ROLES["roles"])
"""The permissions of each role that can be granted on a bucket."""
_DEFAULT_ACCESS: Mapping[str, object] = {
    "publicAccessPrevention": "inherited",
    "uniformBucketLevelAccess": {"enabled": True},
}


def bucket_json(bucket: BucketRecord, base_url: str) -> dict[str, object]:
    """The bucket resource, with links below `base_url`."""
    access = bucket.fields.get("iamConfiguration")
    return {
        "kind": "storage#bucket",
        "id": bucket.name,
        "selfLink": f"{base_url}/storage/v1/b/{bucket.name}",
        "name": bucket.name,
        "projectNumber": project_number(bucket.project),
        "generation": str(bucket.created_us),
        "metageneration": str(bucket.metageneration),
        "location": DEFAULT_LOCATION,
        "locationType": (kind := location_type(bucket.fields)),
        "storageClass": "STANDARD",
        "etag": bucket_etag(bucket),
        "timeCreated": rfc3339(bucket.created_us),
        "updated": rfc3339(bucket.updated_us or bucket.created_us),
        "softDeletePolicy": {"retentionDurationSeconds": "0"},
        **({} if kind == "region" else {"rpo": "DEFAULT"}),
        **bucket.fields,
        "iamConfiguration": {**_DEFAULT_ACCESS, **(access if isinstance(access, dict) else {})},
    }


def bucket_etag(bucket: BucketRecord) -> str:
    """The ETag of a bucket and of its IAM policy: changes with every metageneration. The first is `CAE=`."""
    number = bucket.metageneration
    return base64.b64encode(b"\x08" + number.to_bytes(1 + number.bit_length() // 8, "big")).decode()
