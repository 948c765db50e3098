"""Cloud Logging's gRPC calls, with the HTTP rules from google/logging/v2/*.proto."""

from google.cloud.logging_v2.types import logging as entries
from google.cloud.logging_v2.types import logging_config as config
from google.protobuf import empty_pb2

from trainstack.transcoding import Method
from trainstack.transcoding.method import Services

_SINK = "/v2/{sink_name=projects/*/sinks/*}"
_SINKS = "/v2/{parent=projects/*}/sinks"


def services() -> Services:
    """The methods by service: the same as on the REST surface."""
    return {
        "google.logging.v2.LoggingServiceV2": [
            _entries("WriteLogEntries", "/v2/entries:write"),
            _entries("ListLogEntries", "/v2/entries:list"),
        ],
        "google.logging.v2.ConfigServiceV2": [
            _sinks("ListSinks", config.ListSinksResponse, "GET", _SINKS),
            _sinks("GetSink", config.LogSink, "GET", _SINK),
            _sinks("CreateSink", config.LogSink, "POST", _SINKS, "sink"),
            _sinks("UpdateSink", config.LogSink, "PUT", _SINK, "sink"),
            _sinks("DeleteSink", None, "DELETE", _SINK),
        ],
    }


def _entries(name: str, path: str) -> Method:
    return Method(
        name=name,
        request=getattr(entries, f"{name}Request").pb(),
        response=getattr(entries, f"{name}Response").pb(),
        verb="POST",
        path=path,
        body="*",
    )


def _sinks(name: str, response: type | None, verb: str, path: str, body: str = "") -> Method:
    return Method(
        name=name,
        request=getattr(config, f"{name}Request").pb(),
        response=response.pb() if response else empty_pb2.Empty,  # type: ignore[attr-defined]  # proto-plus
        verb=verb,
        path=path,
        body=body,
    )
