"""The values in a request by their paths, so that two requests can be compared one by one. Pure."""

from collections.abc import Iterator, Mapping

from trainmaster.orchestrator.core.runs.index import named_args


def flat_values(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The values in a part of the request, by path; of a list of arguments, by the argument's name."""
    match value:
        case Mapping():
            for key, each in value.items():
                yield from flat_values(each, f"{path}.{key}" if path else str(key))
        case list() | tuple() if path.endswith("args") and all(isinstance(each, str) for each in value):
            for name, text in named_args([str(each) for each in value]).items():
                yield f"{path} {name}", text
        case list() | tuple() if any(isinstance(each, Mapping) for each in value):
            for index, each in enumerate(value):
                yield from flat_values(each, f"{path}[{index}]")
        case list() | tuple():
            yield path, ", ".join(map(str, value))
        case bool():
            yield path, str(value).lower()
        case _:
            yield path, str(value)
