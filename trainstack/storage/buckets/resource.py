"""The bucket resource.

Source: https://cloud.google.com/storage/docs/json_api/v1/buckets
"""

import base64
from collections.abc import Mapping

from trainstack.project import project_number
from trainstack.storage.buckets.locations import DEFAULT, location_type
from trainstack.storage.objects.records import BucketRecord
from trainstack.storage.objects.resource import rfc3339

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
        "location": DEFAULT,
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
