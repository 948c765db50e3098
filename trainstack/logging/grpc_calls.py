"""Cloud Logging's gRPC calls, with the HTTP rules from google/logging/v2/*.proto."""

from google.cloud.logging_v2.types import logging as entries
from google.cloud.logging_v2.types import logging_config as config

from trainstack.transcoding.method import Services, method_from

_SINK = "/v2/{sink_name=projects/*/sinks/*}"
_SINKS = "/v2/{parent=projects/*}/sinks"


def services() -> Services:
    """The methods by service: the same as on the REST surface."""
    sink = config.LogSink
    return {
        "google.logging.v2.LoggingServiceV2": [
            method_from(
                f"POST /v2/entries:{verb}",
                name := f"{verb.title()}LogEntries",
                getattr(entries, f"{name}Request"),
                getattr(entries, f"{name}Response"),
                body="*",
            )
            for verb in ("write", "list")
        ],
        "google.logging.v2.ConfigServiceV2": [
            method_from(f"GET {_SINKS}", "ListSinks", config.ListSinksRequest, config.ListSinksResponse),
            method_from(f"GET {_SINK}", "GetSink", config.GetSinkRequest, sink),
            method_from(f"POST {_SINKS}", "CreateSink", config.CreateSinkRequest, sink, body="sink"),
            method_from(f"PUT {_SINK}", "UpdateSink", config.UpdateSinkRequest, sink, body="sink"),
            method_from(f"DELETE {_SINK}", "DeleteSink", config.DeleteSinkRequest),
        ],
    }
