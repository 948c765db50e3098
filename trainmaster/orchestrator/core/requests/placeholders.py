"""The placeholders of a request: the deployment's, `${project}` and its like, and the run's, `${run_id}` and `${trial}`.

The deployment's are allowed in every string value of a request in our own dialect, and of a rule in all of it. They are
filled when the document is read, so the canonical request has none, and the same file is dropped in every project.

The run's are allowed in `args` and `model_uri`. The canonical request keeps them. They are filled when a job is built, so
every submission of a run has the same values, whichever fallback it is of; `${trial}` is filled once the best trial is
known. There `$${` is the text `${`; in other values only `$${project}` and its like are, as the text `${project}`.

A rule's request may hold the rule's own places beside them, whose names have a dot and which are filled when the rule
fires: retraining/filling.py. Files of Google's tools have no placeholders: their arguments stay as they are written.

`--start_from=champion` and `--start_from=RUN_ID` become the URI of a model when a run is accepted, so every fallback,
retry and trial starts from the same model. Any other value of that flag is left to the program.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import chain, islice
from typing import Any

from trainmaster.orchestrator.core.documents.faults import MAX_COLLECTED, Fault, Suggestions, nearest
from trainmaster.orchestrator.core.documents.values import Path, list_at, text_at, with_strings
from trainmaster.orchestrator.core.names import has_form_of_run_id
from trainmaster.orchestrator.core.requests.draft import Draft

PLACEHOLDER = re.compile(r"\$(?P<literal>\$\{)|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
LITERAL = "$${"
DEPLOYMENT = ("project", "region", "inbox_bucket", "models_bucket")
"""The names of a deployment's own values; `region` is where it runs, not the request's."""
_DEPLOYMENT = re.compile(r"(?P<literal>\$?)\$\{(?P<name>" + "|".join(DEPLOYMENT) + r")\}")
RUN_ID, TRIAL = "run_id", "trial"
ARGS, MODEL_URI = "args", "model_uri"
PREFIX_URI = ("output", "prefix_uri")
START_FLAGS = ("--start_from", "--start-from")
CHAMPION = "champion"
_BY_LITERAL = f"write {LITERAL} for a literal ${{, for example in a shell command"


def text_with_values(text: str, **values: str) -> str:
    """The text with these placeholders filled and every `$${` written as `${`; other placeholders stay."""

    def of(match: re.Match[str]) -> str:
        return "${" if match["literal"] else values.get(match["inside"], match[0])

    return PLACEHOLDER.sub(of, text)


def with_deployment(document: object, names: Mapping[str, str]) -> object:
    """The rule, or rule's request, with the placeholders of the deployment filled by `names`; every `$${` stays."""
    return with_strings(document, lambda text, _: _with_values(text, names)) if names else document


def request_with_deployment(document: object, names: Mapping[str, str]) -> object:
    """The request in our own dialect with the placeholders of the deployment filled by `names`.

    Where no run's placeholder may stand, `$${project}` becomes `${project}`, so this must be done once.
    """
    return with_strings(
        document, lambda text, path: _with_values(text, names, unescape=not holds_placeholders(path))
    )


def without_deployment(text: str) -> str:
    """The text that `request_with_deployment` gives back as it was."""
    return _DEPLOYMENT.sub(lambda match: f"{match['literal']}{LITERAL}{match['name']}}}", text)


def _with_values(text: str, names: Mapping[str, str], *, unescape: bool = False) -> str:
    def of(match: re.Match[str]) -> str:
        if match["literal"]:
            return match[0].removeprefix("$") if unescape else match[0]
        return names.get(match["name"], match[0])

    return _DEPLOYMENT.sub(of, text)


def literal(value: object) -> object:
    """The text, or list of texts, in which `text_with_values` finds no placeholder and which it gives back as it was."""
    if isinstance(value, list):
        return [literal(part) for part in value]
    return value.replace("${", LITERAL) if isinstance(value, str) else value


def find_names(text: str) -> frozenset[str]:
    """The names of the text's placeholders."""
    return frozenset(match["inside"] for match in PLACEHOLDER.finditer(text) if match["end"])


def holds_placeholders(path: Path) -> bool:
    """Whether the value at this path of a request in our own dialect is filled when the job is built."""
    return path == (MODEL_URI,) or path[-2:-1] == (ARGS,)


def placeholder_faults(draft: Draft) -> list[Fault]:
    """Every placeholder that has no value where it stands, and every directory for output that belongs to another run."""
    suggestions = Suggestions()
    faults = (
        fault
        for here, place in draft.places.items()
        for index, word in enumerate(list_at(place, ARGS))
        if isinstance(word, str)
        for fault in _faults((*here, ARGS, index), word, (RUN_ID,), draft, suggestions)
    )
    return list(islice(chain(_output_faults(draft, suggestions), faults), MAX_COLLECTED))


def _output_faults(draft: Draft, suggestions: Suggestions) -> Iterator[Fault]:
    prefix, uri = text_at(draft.document, *PREFIX_URI) or "", text_at(draft.document, MODEL_URI)
    repair = "name the directory above it: each run gets its own directory there"
    inside = list(_inside_a_run(PREFIX_URI, prefix, repair))
    yield from inside
    # A legacy jobDir is both, and is reported once.
    if uri is not None and not (inside and uri.startswith(prefix.rstrip("/"))):
        yield from _model_uri_faults(uri, draft, suggestions)


def _model_uri_faults(uri: str, draft: Draft, suggestions: Suggestions) -> Iterator[Fault]:
    at: Path = (MODEL_URI,)
    yield from _faults(at, uri, (RUN_ID, TRIAL) if draft.tuning else (RUN_ID,), draft, suggestions)
    if draft.tuning and TRIAL not in find_names(uri):
        yield Fault(
            at=at,
            problem="every trial would write to the same place, so the best trial's model could not be identified",
            value=uri,
            repair=f"write {uri.rstrip('/')}/${{trial}}, and have the program add its CLOUD_ML_TRIAL_ID",
        )
    yield from _inside_a_run(at, uri, "write ${run_id} for this run's own id")


def _inside_a_run(at: Path, uri: str, repair: str) -> Iterator[Fault]:
    """Also in a trial's directory, which is below its run's. The run's own id is a placeholder here, or not written."""
    if any(map(has_form_of_run_id, uri.split("/"))):
        yield Fault(at=at, problem="it is inside another run's directory", value=uri, repair=repair)


def _faults(
    at: Path, text: str, allowed: tuple[str, ...], draft: Draft, suggestions: Suggestions
) -> Iterator[Fault]:
    """The faults of a text in which the placeholders `allowed` have a value."""
    for match in PLACEHOLDER.finditer(text):
        if match["literal"] or (match["end"] and match["inside"] in allowed):
            continue
        problem, repair = _unknown(match["inside"], draft, suggestions)
        if not match["end"]:
            problem, repair = "the placeholder is not closed", f"close it, or {_BY_LITERAL}"
        among = [f"${{{name}}}" for name in (*allowed, *DEPLOYMENT)]
        yield Fault(at=at, problem=problem, value=match[0], among=among, repair=repair)


def _unknown(name: str, draft: Draft, suggestions: Suggestions) -> tuple[str, str]:
    if name != TRIAL:
        meant = nearest(name, (RUN_ID, TRIAL, *DEPLOYMENT), suggestions)
        return "unknown placeholder", f"{meant} Or {_BY_LITERAL}" if meant else _BY_LITERAL
    if not draft.tuning:
        return "a run without a tuning has no trials", "remove it, or write ${run_id}"
    return (
        "all trials of a job get the same arguments",
        "have the program read the environment variable CLOUD_ML_TRIAL_ID; in env, $(CLOUD_ML_TRIAL_ID) expands to it",
    )


def starts_in(document: Mapping[str, Any]) -> Iterator[tuple[Path, range, str]]:
    """For each such argument the path of its list, its indexes there, two of `--start_from champion`, and its value."""
    for here, place in Draft(document=document).places.items():
        args = [*map(str, list_at(place, ARGS)), ""]
        for index, word in enumerate(args[:-1]):
            flag, equals, value = word.partition("=")
            value = value if equals else args[index + 1]
            if flag in START_FLAGS and (value == CHAMPION or has_form_of_run_id(value)):
                yield (*here, ARGS), range(index, index + (1 if equals else 2)), value


def with_models(document: Mapping[str, Any], uris: Mapping[str, str | None]) -> Mapping[str, Any]:
    """The document with the URI for each value in place of it; an argument without one is left out."""
    changed = deepcopy(document)
    for path, indexes, value in reversed([*starts_in(document)]):
        args: Any = changed
        for part in path:
            args = args[part]
        uri = uris[value]
        args[indexes.start : indexes.stop] = [] if uri is None else [f"{START_FLAGS[0]}={literal(uri)}"]
    return changed
