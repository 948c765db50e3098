"""Cloud Logging's gRPC calls, with the HTTP rules from google/logging/v2/*.proto."""

from types import ModuleType

from google.cloud.logging_v2.types import logging as entries
from google.cloud.logging_v2.types import logging_config as config
from google.cloud.logging_v2.types import logging_metrics as metrics

from trainstack.transcoding.method import Method, Services, method_from


def services() -> Services:
    """The methods by service: the same as on the REST surface."""
    return {
        "google.logging.v2.LoggingServiceV2": [
            *(
                method_from(
                    f"POST /v2/entries:{verb}", *_types_of(entries, f"{verb.title()}LogEntries"), body="*"
                )
                for verb in ("write", "list")
            ),
            method_from("GET /v2/{parent=projects/*}/logs", *_types_of(entries, "ListLogs")),
            method_from("DELETE /v2/{log_name=projects/*/logs/*}", "DeleteLog", entries.DeleteLogRequest),
        ],
        "google.logging.v2.ConfigServiceV2": _calls_on(config, "Sink", "sink"),
        "google.logging.v2.MetricsServiceV2": _calls_on(metrics, "LogMetric", "metric"),
    }


def _calls_on(types: ModuleType, kind: str, field: str) -> list[Method]:
    """List, get, create, update and delete of the resources in a field of their requests."""
    resource = types.LogSink if kind == "Sink" else types.LogMetric
    one, every = f"/v2/{{{field}_name=projects/*/{field}s/*}}", f"/v2/{{parent=projects/*}}/{field}s"
    requests = {
        verb: getattr(types, f"{verb}{kind}Request") for verb in ("Get", "Create", "Update", "Delete")
    }
    return [
        method_from(f"GET {every}", *_types_of(types, f"List{kind}s")),
        method_from(f"GET {one}", f"Get{kind}", requests["Get"], resource),
        method_from(f"POST {every}", f"Create{kind}", requests["Create"], resource, body=field),
        method_from(f"PUT {one}", f"Update{kind}", requests["Update"], resource, body=field),
        method_from(f"DELETE {one}", f"Delete{kind}", requests["Delete"]),
    ]


def _types_of(types: ModuleType, name: str) -> tuple[str, object, object]:
    """A method's name, its request and its response."""
    return name, getattr(types, f"{name}Request"), getattr(types, f"{name}Response")
