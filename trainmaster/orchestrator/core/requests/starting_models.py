"""`--start_from=champion` and `--start_from=RUN_ID` in the arguments of a request, which become the URI of a model.

They are resolved when a run is accepted, so every fallback, retry and trial starts from the same model. Any other value
is left to the program.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from trainmaster.orchestrator.core.documents.values import Path, list_at
from trainmaster.orchestrator.core.names import has_form_of_run_id
from trainmaster.orchestrator.core.requests.draft import Draft
from trainmaster.orchestrator.core.requests.placeholders import ARGS, literal

FLAGS = ("--start_from", "--start-from")
CHAMPION = "champion"


def starts_in(document: Mapping[str, Any]) -> Iterator[tuple[Path, range, str]]:
    """For each such argument the path of its list, its indexes there, two of `--start_from champion`, and its value."""
    for here, place in Draft(document=document).places.items():
        args = [*map(str, list_at(place, ARGS)), ""]
        for index, word in enumerate(args[:-1]):
            flag, equals, value = word.partition("=")
            value = value if equals else args[index + 1]
            if flag in FLAGS and (value == CHAMPION or has_form_of_run_id(value)):
                yield (*here, ARGS), range(index, index + (1 if equals else 2)), value


def with_models(document: Mapping[str, Any], uris: Mapping[str, str | None]) -> Mapping[str, Any]:
    """The document with the URI for each value in place of it; an argument without one is left out."""
    changed = deepcopy(document)
    for path, indexes, value in reversed([*starts_in(document)]):
        args: Any = changed
        for part in path:
            args = args[part]
        uri = uris[value]
        args[indexes.start : indexes.stop] = [] if uri is None else [f"{FLAGS[0]}={literal(uri)}"]
    return changed
