"""The model that a chief saved: the files in its model directory, from any library.

The model's files are never opened. The bucket's listing gives their names and sizes, `metrics.json` the metrics, and
`export.json`, if the trainer wrote one, the data set. Its format is judged by file names alone.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.codec import TooDeep, decoded, parse_json
from trainmaster.orchestrator.core.documents.document import MAX_DEPTH
from trainmaster.orchestrator.core.documents.faults import cut, listed, plain
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.documents.values import has_too_many_values, mapping_at, text_at
from trainmaster.orchestrator.core.runs.end import Model, ModelData, ModelFiles
from trainmaster.orchestrator.core.sizes import MAX_METRICS_BYTES, in_bytes

OTHER = "other"
"""Files that match no row below."""

_BY_NAME = (
    ("saved_model", r"saved_model\.(pb|pbtxt)"),
    ("keras", r".+\.keras"),
    ("keras_h5", r".+\.(h5|hdf5)"),
    ("tflite", r".+\.(tflite|lite)"),
    ("hugging_face", r"(model|diffusion_pytorch_model|adapter_model)(-\d+-of-\d+)?\.safetensors"),
    ("hugging_face", r"pytorch_model(-\d+-of-\d+)?\.bin"),
    ("safetensors", r".+\.safetensors"),
    ("torchscript", r".+\.(torchscript|torchscript\.pt|ptl)"),
    ("torch_export", r".+\.pt2"),
    ("onnx", r".+\.onnx"),
    ("pytorch", r".+\.(pt|pth|mar|ckpt)"),
    ("xgboost", r".+\.(ubj|bst|xgb|xgboost)"),
    ("lightgbm", r".*(lightgbm|lgbm?)[^/]*\.(txt|model)|.+\.lgbm?"),
    ("catboost", r".+\.cbm"),
    ("orbax", r"_CHECKPOINT_METADATA|_METADATA|manifest\.ocdbt"),
    ("flax", r".+\.msgpack"),
    ("scikit_learn", r".+\.(joblib|skops)"),
    ("pickle", r".+\.(pkl|pickle)"),
    ("tensorflow_checkpoint", r".+\.index"),
)
"""Ordered: if several rows match, the first names the format.

Sources: the file names that each library's saving functions write, or that its guides use: Keras `model.save`,
`tf.saved_model.save`, `torch.save`, `torch.jit.save`, `torch.export.save`, `torch.onnx.export`, transformers'
`save_pretrained`, XGBoost's `save_model`, LightGBM's `save_model`, `joblib.dump`, Orbax's checkpointers.
"""
_EXPRESSIONS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _BY_NAME)


def format_of(paths: Iterable[str]) -> str:
    """The format of the model that consists of these files, given as paths relative to its directory."""
    names = {path.rpartition("/")[2] for path in paths}
    found = (name for name, expression in _EXPRESSIONS if any(map(expression.fullmatch, names)))
    return next(found, OTHER)


MANIFEST_NAME, METRICS_NAME = "export.json", "metrics.json"
MAX_METRICS = 200
MAX_METRIC_CHARS, MAX_FAILURE_CHARS = 256, 500
MAX_FILES = 20_000
_VALUES_OF_FILE = 9
"""A mapping of four keys and their values."""
SHOWN_FILES = 8
"""How many files a problem names at most."""

_TEMPORARY = re.compile(r"(.*/)?(workertemp_[^/]*|_temporary|[^/]+\.orbax-checkpoint-tmp[^/]*)/.*")
"""Where other replicas and unfinished writers put temporary files.

`workertemp_N`: the directory of a worker other than the chief, in TensorFlow's multi-worker guide and Google's codelabs.
https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras#model_saving_and_loading
"""


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """One file of a model directory, as the bucket lists it; `path` is relative to the directory.

    `crc32c` and `md5` are base64, as Cloud Storage writes them; composed objects have no `md5`.
    """

    path: str
    size_bytes: int
    generation: int
    crc32c: str = ""
    md5: str | None = None


@dataclass(frozen=True, kw_only=True)
class ModelDirectory:
    """What a model's URI holds.

    Attributes:
        uri: ends in `/` for a directory, not for a single file.
        files: at most `MAX_FILES`, by path.
        has_more: there are more files than `MAX_FILES`.
        manifest, metrics: the contents of export.json and metrics.json; None if the file is absent or too large.
        oversized: the names of those two that are too large to be read.
        replaced: the names of those two that changed between the listing and the read.
        is_named: the URI is in the request; else it is AIP_MODEL_DIR.
        older: paths of files created before the job started at `since`, which are not the run's.
        denied: why the directory could not be read; empty if it could.
    """

    uri: str
    files: tuple[ModelFile, ...] = ()
    has_more: bool = False
    manifest: bytes | None = None
    metrics: bytes | None = None
    oversized: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    is_named: bool = False
    older: tuple[str, ...] = ()
    since: datetime | None = None
    denied: str = ""

    @property
    def holds_model(self) -> bool:
        return any(is_of_model(file.path) for file in self.files)


@dataclass(frozen=True, kw_only=True)
class FoundModel:
    """The model in a directory, the files that it consists of, the documents that counted, and the problems found.

    `metrics`: those that the program left without a model, as an evaluation does.
    """

    model: Model | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    files: tuple[ModelFile, ...] = ()
    documents: tuple[ModelFile, ...] = ()
    problems: tuple[str, ...] = field(default=())


def find_first_model(
    directories: Sequence[ModelDirectory],
    export_schema: Mapping[str, Any],
    *,
    measured: Mapping[str, float] | None = None,
) -> FoundModel:
    """The model in the first directory that holds one. If none does, the problem lists what each of them holds."""
    for number, directory in enumerate(directories):
        if directory.holds_model:
            found = find_model(directory, export_schema, measured)
            named = (earlier for earlier in directories[:number] if earlier.is_named)
            missed = (f"{_contents(earlier)}: no model" for earlier in named)
            return replace(found, problems=(*missed, *found.problems))
    looked = "; ".join(map(_contents, directories))
    metrics = next(filter(None, (parse_metrics(directory.metrics) for directory in directories)), {})
    advice = "" if metrics else f". {_ADVICE}"
    return FoundModel(model=None, metrics=metrics, problems=(f"no model was found: {looked}{advice}",))


def find_model(
    directory: ModelDirectory, export_schema: Mapping[str, Any], measured: Mapping[str, float] | None = None
) -> FoundModel:
    """The model in the directory. `measured` are the service's metrics; those that the trainer wrote override them."""
    files = tuple(file for file in directory.files if is_of_model(file.path))
    if not files:
        return FoundModel(model=None, problems=(f"no model was found: {_contents(directory)}. {_ADVICE}",))
    problems = [f"{name} is too large to read" for name in directory.oversized]
    problems += [f"{name} was ignored: it was replaced while it was read" for name in directory.replaced]
    manifest, manifest_problems = _parse_manifest(directory, files, export_schema)
    metrics, metrics_problems = _parse_metrics(directory.metrics)
    not_finite = {name: float(value) for name, value in manifest.get("not_finite", {}).items()}
    claims = {**manifest.get("metrics", {}), **not_finite}
    claimed, claims_problems = _first_metrics(MANIFEST_NAME, claims)
    finite, diverged = _finite({**claimed, **metrics})
    problems += [*manifest_problems, *claims_problems, *metrics_problems]
    problems += _divergences(diverged)
    if directory.older:
        problems.append(f"{directory.uri} also contains {_older(directory)}, which were not recorded")
    if directory.has_more:
        problems.append(f"the directory has more than {MAX_FILES} files; only the first were recorded")
    counted = {MANIFEST_NAME: bool(manifest), METRICS_NAME: bool(metrics)}
    documents = {file.path: file for file in directory.files if counted.get(file.path)}
    folder = directory.uri.rpartition("/")[0]
    model = Model(
        uri=directory.uri,
        format=format_of(file.path for file in files),
        manifest_uri=f"{folder}/{MANIFEST_NAME}" if manifest else None,
        manifest_sha256=hashlib.sha256(directory.manifest or b"").hexdigest() if manifest else None,
        manifest_generation=documents[MANIFEST_NAME].generation if MANIFEST_NAME in documents else None,
        metrics_uri=f"{folder}/{METRICS_NAME}" if metrics else None,
        metrics_generation=documents[METRICS_NAME].generation if METRICS_NAME in documents else None,
        dataset=decoded(ModelData, manifest["dataset"]) if "dataset" in manifest else None,
        metrics=dict(sorted({**_finite(measured or {})[0], **finite}.items())),
        not_finite=diverged or None,
        files=ModelFiles(
            count=len(files),
            size_bytes=sum(file.size_bytes for file in files),
            has_more=directory.has_more or None,
        ),
    )
    return FoundModel(model=model, files=files, documents=tuple(documents.values()), problems=tuple(problems))


def overwriting_problem(directory: ModelDirectory) -> str | None:
    """The warning for a running job whose directory holds files older than its start; None if there are none."""
    if not directory.older:
        return None
    parent, slash, name = directory.uri.rpartition("/")
    own = f"{parent}{slash}${{run_id}}" + (f"/{name}" if name else "")
    return (
        f"{directory.uri} contains {_older(directory)}. The run may overwrite them, including a model that an earlier run "
        f"recorded; give each run its own directory with ${{run_id}} in model_uri, for example {own}"
    )


@dataclass(frozen=True, kw_only=True)
class RecordedFiles:
    """The document that lists a model's files, stored beside the record: schemas/model_files.v1.schema.json.

    `documents` are export.json and metrics.json, if they counted.
    """

    schema: str = "model_files.v1"
    run_id: str
    model_uri: str
    files: tuple[ModelFile, ...]
    documents: tuple[ModelFile, ...] = ()


def is_of_model(path: str) -> bool:
    """Whether a file belongs to the model: not a folder marker, the metrics, the manifest or a temporary file."""
    is_marker = not path or path.endswith("/")
    return not is_marker and path not in (MANIFEST_NAME, METRICS_NAME) and not _TEMPORARY.fullmatch(path)


_ADVICE = (
    "The chief saves its model in AIP_MODEL_DIR, or where the request names it with model_uri; "
    "functions for plain files need its path with /gcs/ in place of gs://"
)


def _contents(directory: ModelDirectory) -> str:
    """The contents of a directory without a model, in one line of bounded length."""
    if directory.denied:
        return f"{directory.uri} cannot be read: {directory.denied}"
    documents = {METRICS_NAME: directory.metrics, MANIFEST_NAME: directory.manifest}
    others = [name for name, content in documents.items() if content]
    others += [plain(file.path) for file in directory.files if file.path and not file.path.endswith("/")]
    parts = [f"only {listed(dict.fromkeys(others), SHOWN_FILES)}"] if others else []
    parts += [_older(directory)] if directory.older else []
    parts += [f"more than {MAX_FILES} files; only the first were examined"] if directory.has_more else []
    return f"{directory.uri} holds {' and '.join(parts) or 'nothing'}"


def _older(directory: ModelDirectory) -> str:
    since = f", {directory.since:%Y-%m-%dT%H:%M:%SZ}" if directory.since else ""
    return f"files older than the job's start{since}: {listed(map(plain, directory.older), SHOWN_FILES)}"


# Any: if there are no problems, the schema guarantees the types.
def _parse_manifest(
    directory: ModelDirectory, files: Sequence[ModelFile], export_schema: Mapping[str, Any]
) -> tuple[Mapping[str, Any], list[str]]:
    """The manifest, empty unless it describes these files, and the reasons for ignoring it."""
    if directory.manifest is None:
        return {}, []
    manifest, problems = _parse_document(directory.manifest)
    if not problems and _has_too_many_values(manifest):
        problems = [f"it has more than {MAX_FILES} files, or too many other values"]
    if not problems:
        faults = schema_faults(export_schema, manifest)
        more = len(faults) - SHOWN_FILES
        problems = [*map(str, faults[:SHOWN_FILES]), *([f"{more} more faults"] if more > 0 else [])]
    if not problems and manifest.get("model_uri", directory.uri) != directory.uri:
        problems.append(f"it describes {manifest['model_uri']!r}, not {directory.uri}")
    if not problems:
        problems += _false_claims(manifest.get("files", []), {file.path: file for file in files})
    return ({} if problems else manifest), [f"{MANIFEST_NAME} was ignored: {problem}" for problem in problems]


def _has_too_many_values(manifest: object) -> bool:
    """Whether the manifest is more work than one that lists MAX_FILES files."""
    if not isinstance(manifest, dict):
        return False
    rest = {key: value for key, value in manifest.items() if key != "files"}
    is_long = has_too_many_values(manifest.get("files"), MAX_FILES * _VALUES_OF_FILE)
    return is_long or has_too_many_values(rest)


def _parse_document(content: bytes) -> tuple[Any, list[str]]:
    try:
        return parse_json(content, MAX_DEPTH), []
    except TooDeep as error:
        return None, [f"it is {error}"]
    except ValueError as error:
        return None, [f"it is not JSON: {error}"]


def _false_claims(claims: Sequence[Mapping[str, Any]], files: Mapping[str, ModelFile]) -> list[str]:
    """Where the manifest contradicts the bucket, which lists sizes and MD5 hashes, but no SHA-256."""
    missing = [plain(claim["path"]) for claim in claims if claim["path"] not in files]
    there = [(claim, files[claim["path"]]) for claim in claims if claim["path"] in files]
    sizes = [
        f"{plain(file.path)} has {in_bytes(file.size_bytes)}, not {claim['size_bytes']}"
        for claim, file in there
        if claim["size_bytes"] != file.size_bytes
    ]
    hashes = [
        f"{plain(file.path)} has the MD5 hash {file.md5}, not {plain(claim['md5'])}"
        for claim, file in there
        if file.md5 is not None and claim.get("md5", file.md5) != file.md5
    ]
    false = [*sizes, *hashes]
    more = [f"{len(false) - SHOWN_FILES} more files differ"] if len(false) > SHOWN_FILES else []
    return [*([f"files are missing: {listed(missing)}"] if missing else []), *false[:SHOWN_FILES], *more]


def parse_metrics(content: bytes | None) -> Mapping[str, float]:
    """The finite numbers in a metrics.json by name; empty if it has none, is invalid or exceeds MAX_METRICS_BYTES."""
    if content is None or len(content) > MAX_METRICS_BYTES:
        return {}
    return _finite(_parse_metrics(content)[0])[0]


def parse_scores(
    content: bytes | None, models: Sequence[str], job: str = "evaluation"
) -> Mapping[str, Mapping[str, float]] | str:
    """The finite numbers in the metrics.json of the job, of each of `models` by its name; or what is wrong.

    In place of numbers, the program may have written why it has no numbers, as `failure`.
    """
    if content is None:
        return f"the {job} left no {METRICS_NAME} in the directory of --output, or one that is too large"
    document, problems = _parse_document(content)
    if problems:
        return f"{METRICS_NAME} of the {job}: {problems[0]}"
    if failure := text_at(document, "failure"):
        return cut(" ".join(failure.split()), MAX_FAILURE_CHARS)
    scores = {name: mapping_at(document, name) for name in models}
    if missing := [name for name in models if not scores[name]]:
        return f"{METRICS_NAME} of the {job} has no numbers of the {listed(missing)}"
    return {name: _finite(_first_metrics(METRICS_NAME, written)[0])[0] for name, written in scores.items()}


def _parse_metrics(content: bytes | None) -> tuple[Mapping[str, Any], list[str]]:
    """The numbers by name, and the problems with other values."""
    if content is None:
        return {}, []
    document, problems = _parse_document(content)
    if not problems and not isinstance(document, dict):
        problems = [f"expected an object of numbers by name, found {type(document).__name__}"]
    if problems:
        return {}, [f"{METRICS_NAME}: {problem}" for problem in problems]
    return _first_metrics(METRICS_NAME, document)


def _first_metrics(file: str, written: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """At most MAX_METRICS numbers by name, and the problems with other values."""
    odd = [name for name, value in written.items() if not _is_metric(name, value)]
    kept = {name: value for name, value in written.items() if _is_metric(name, value)}
    problems = [f"{file}: expected a number for {listed(map(plain, odd))}"] if odd else []
    if len(kept) > MAX_METRICS:
        problems.append(f"{file}: {len(kept)} metrics; the first {MAX_METRICS} by name are recorded")
        kept = {name: kept[name] for name in sorted(kept)[:MAX_METRICS]}
    return kept, problems


def _is_metric(name: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < len(name) <= MAX_METRIC_CHARS


def _finite(metrics: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """The finite metrics, and the others as text: Python accepts NaN in JSON, but a record must not hold it."""
    values = {name: _float(value) for name, value in sorted(metrics.items())}
    finite = {name: value for name, value in values.items() if math.isfinite(value)}
    return finite, {name: str(value) for name, value in values.items() if name not in finite}


def _divergences(diverged: Mapping[str, str]) -> list[str]:
    """One problem for all metrics of the same value: one cause has one line."""
    named = {
        value: [plain(name) for name, each in diverged.items() if each == value]
        for value in diverged.values()
    }
    return [
        f"the {'metric' if len(names) == 1 else 'metrics'} {listed(names, SHOWN_FILES)} "
        f"{'is' if len(names) == 1 else 'are'} {value}: the training diverged"
        for value, names in named.items()
    ]


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # JSON does not limit integers
        return math.inf if number > 0 else -math.inf
