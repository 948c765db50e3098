"""The adapters translate every error that the clients may raise; a new error in a library fails here."""

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import ModuleType

import google.api_core.exceptions as api
import google.auth.exceptions as auth
import google.cloud.storage.exceptions as gcs_errors
import pytest
import requests

from tests.contract.world import PROJECT, REGION
from trainmaster.orchestrator.adapters import gcs, vertex
from trainmaster.orchestrator.adapters.refusals import Called, failures_of
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.job_names import JobKind

CALLED = Called(project=PROJECT, region=REGION, kind=JobKind.CUSTOM)


def raised_by(module: ModuleType) -> Iterator[type[Exception]]:
    for _, kind in inspect.getmembers(module, inspect.isclass):
        if (
            issubclass(kind, Exception)
            and not issubclass(kind, Warning)
            and kind.__module__ == module.__name__
        ):
            yield kind


def made(kind: type[Exception]) -> Exception:
    """An instance, with the arguments that the class needs."""
    if kind is gcs_errors.InvalidResponse:
        return gcs_errors.InvalidResponse(requests.Response(), "message")
    if kind is requests.exceptions.JSONDecodeError:
        return requests.exceptions.JSONDecodeError("message", "document", 0)
    if kind is api.RetryError:
        return api.RetryError("message", None)
    try:
        return kind("message")
    except TypeError:
        return kind()


def fail(translation: AbstractContextManager[None], error: Exception) -> None:
    with translation:
        raise error


# Misuse of a library: a bug, which must not be disguised.
MISTAKES = {
    api.AsyncRestUnsupportedParameterError,
    api.DuplicateCredentialArgs,
    gcs_errors.InvalidPathError,  # of downloads to directories, which this program never makes
}
SHARED = [
    *raised_by(api),
    *raised_by(auth),
    *raised_by(requests.exceptions),
    ConnectionError,
    ConnectionResetError,
    TimeoutError,
]
SHARED = [kind for kind in SHARED if kind not in MISTAKES]
STORAGE = [*SHARED, *(kind for kind in raised_by(gcs_errors) if kind not in MISTAKES)]


def test_the_libraries_errors_are_found() -> None:
    assert len(SHARED) > 50
    assert {api.NotFound, auth.RefreshError, requests.exceptions.ReadTimeout} <= set(SHARED)


@pytest.mark.parametrize("kind", STORAGE, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_error_of_the_storage_client_is_translated(kind: type[Exception]) -> None:
    with pytest.raises(TrainmasterError) as translated:
        fail(gcs._failures_of("read", "gs://bucket/name", if_generation=1), made(kind))
    assert translated.value.__cause__ is not None


@pytest.mark.parametrize("kind", SHARED, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_error_of_the_other_clients_is_translated(kind: type[Exception]) -> None:
    with pytest.raises(TrainmasterError):
        fail(failures_of("Vertex AI", "read a job"), made(kind))
    assert isinstance(vertex._submission_error(made(kind), CALLED), TrainmasterError)


@pytest.mark.parametrize("mistake", [TypeError("t"), AttributeError("a"), KeyError("k")])
def test_a_mistake_of_this_program_is_not_disguised(mistake: Exception) -> None:
    with pytest.raises(type(mistake)):
        fail(gcs._failures_of("read", "gs://bucket/name"), mistake)
    with pytest.raises(type(mistake)):
        fail(failures_of("Vertex AI", "read a job"), mistake)
    assert vertex._submission_error(mistake, CALLED) is mistake
