"""Fixtures of what a context manager opens in a temporary folder."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeVar

import pytest

T = TypeVar("T")


# Any: a fixture, and the options of its context.
def fixture_of(
    open_context: Callable[..., AbstractContextManager[T]],
    fill: Callable[[T], object] = lambda _: None,
    *,
    scope: Literal["function", "module", "session"] = "module",
    **more: Any,
) -> Any:
    """A fixture: the context in a folder of its own, opened with `more` and filled once for the scope."""

    @pytest.fixture(scope=scope)
    def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[T]:
        with open_context(tmp_path_factory.mktemp("served"), **more) as context:
            fill(context)
            yield context

    return opened
