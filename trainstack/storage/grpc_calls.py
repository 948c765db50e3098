"""Cloud Storage's only gRPC call here: the layout of a bucket, which gcsfs asks for before it opens a bucket's first file."""

from trainstack.transcoding.message_types import message_type
from trainstack.transcoding.method import Services, method_from

_PACKAGE = "google.storage.control.v2"


def services() -> Services:
    """The methods by service, with the fields of google/storage/control/v2/storage_control.proto that gcsfs reads.

    Without a field about it, a bucket has no hierarchical namespace.
    """
    text = {name: (number, "string") for number, name in enumerate(("name", "location", "location_type"), 1)}
    request = message_type(_PACKAGE, "GetStorageLayoutRequest", name=text["name"])
    layout = message_type(_PACKAGE, "StorageLayout", **text)
    rule = "GET /v2/{name=projects/_/buckets/*/storageLayout}"
    return {f"{_PACKAGE}.StorageControl": [method_from(rule, "GetStorageLayout", request, layout)]}
