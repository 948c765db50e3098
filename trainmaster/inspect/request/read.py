"""From a request file to what it asks of the program."""

import json
from pathlib import Path
from typing import Any

from trainmaster.inspect.faults import Unusable
from trainmaster.inspect.request import dialects
from trainmaster.inspect.request.document import Document, member
from trainmaster.inspect.request.request import Request
from trainmaster.inspect.request.shape import shape_faults


def request_in(path: Path) -> Request:
    """The request in a YAML or JSON file, in whichever dialect.

    Raises:
        Unusable: the file cannot be read or is no request. Whether a request is legal in all its
            parts is the orchestrator's to say.
    """
    try:
        document = _parsed(path, path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"--request {str(path)!r} cannot be read: {error}.") from error
    if not isinstance(document, dict):
        raise Unusable(
            f"--request {str(path)!r} holds {type(document).__name__}, a request is a mapping: "
            f"one of our own (`model_name`, `image` …), of gcloud (`workerPoolSpecs`, `studySpec` …) or of "
            f"AI Platform Training (`trainingInput`)."
        )
    if faults := list(shape_faults(document)):
        raise Unusable(
            *(f"--request {str(path)!r}: {fault}." for fault in faults),
            "A file like this is refused: `trainmaster convert` names every fault of it.",
        )
    try:
        return _read(document, str(path))
    except (ValueError, TypeError) as error:
        raise Unusable(
            f"--request {str(path)!r} is no request that can be understood: {error}. "
            f"Drop it on the service for every fault with its path."
        ) from error


def _read(document: Document, shown: str) -> Request:
    def has(*names: str) -> bool:
        return any(member(document, name) is not None for name in names)

    if has("training_input"):
        return dialects.legacy(document, shown)
    if has("study_spec", "trial_job_spec", "worker_pool_specs", "job_spec"):
        return dialects.vertex(document, shown)
    return dialects.own(document, shown)


def _parsed(path: Path, text: str) -> Any:  # Any: parsed YAML or JSON
    """JSON is read with what Python has; YAML needs PyYAML, which a training image need not have."""
    try:
        return json.loads(text)
    except ValueError as no_json:
        try:
            import yaml
        except ImportError:
            raise Unusable(
                f"--request {str(path)!r} is no JSON ({no_json}), and PyYAML, which reads YAML, is not installed here. "
                f"Give the request as JSON, or `pip install pyyaml`."
            ) from no_json
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise Unusable(f"--request {str(path)!r} is neither JSON nor YAML: {error}") from error
