"""The names of objects in our buckets, of runs and their labels: built and split here.

`*_id` is one path component, `*_name` a full resource name, `*_uri` begins with a scheme.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

LABEL_MAX_CHARS = 63
HASH_CHARS = 10
KEY_HASH_CHARS = 20
OBJECT_NAME_MAX_BYTES = 1024  # https://cloud.google.com/storage/quotas
MICROSECOND_CHARS = 6

IDEMPOTENCY_KEY = "idempotency_key"
"""The attribute of a message by which its repetitions are known."""
UPLOAD_ID = "trainmaster-upload"
"""The metadata key of an uploaded request that says which call of the command or the console uploaded it."""
REQUESTS_PREFIX = "requests/"
RULES_PREFIX = "rules/"
TEMPLATES_PREFIX = "templates/"
"""With teams, the only place for templates of rules, in a folder for each team."""
SCRIPTS_PREFIX = "scripts/"
"""In the data bucket; the policy's script_prefixes allow it."""
REQUEST_SUFFIXES = (".yaml", ".yml", ".json")
ACTIVE_PREFIX = "active/"
JOBS_PREFIX = "jobs/"
WAITING_PREFIX = "waiting/"
SLOTS_PREFIX = "slots/"
STARTED_PREFIX = "started/"
POOLS_PREFIX = "pools/"
CHAMPIONS_PREFIX = "champions/"
DEPLOYMENT_OBJECT = "deployment.json"
TICKS_PREFIX = "ticks/"
EVALUATIONS_PREFIX = "_evaluations/"
"""Of the champions bucket. No model and no team has this name."""

RUN_LABEL = "trainmaster_run_id"
MODEL_LABEL = "trainmaster_model"
TEAM_LABEL = "trainmaster_team"
STEP_LABEL = "trainmaster_step"
"""Only the label of a follow-up job, which names the step after the run's end that submitted it."""
DEPLOYMENT_LABEL = "trainmaster_deployment"
"""Of every job of a deployment with a name: the name. Others may be in the same project."""
PRIORITY_LABEL = "trainmaster_priority"
"""The label that sets a request's priority in dialects without a key for it."""

_STATUSES_OF_MESSAGES = ("messages/", "keys/")
# Parts of a name that are `.` or `..` are not hidden; an object store knows no parent folder.
PUT_AWAY = re.compile(
    r"(done|archived?|archives|processed|finished|completed?|old|backups?|bak|trash)", re.IGNORECASE
)
"""Folders of what people have finished with."""
_TEMPORARY = re.compile(
    r"(^|/)(\.(?!\.?/)|g(cloud|sutil)/tmp/|#[^/]*#$)|(/|~|\.(tmp|part|swp|gstmp))$", re.IGNORECASE
)
# Sources: Hadoop's committers and `hdfs dfs -put`, Spark's file sink, Databricks' transactional writes, and the folder
# markers of older connectors (https://github.com/GoogleCloudDataproc/hadoop-connectors); archives and shares of desktops.
_MARKER = re.compile(
    r"(^|/)((_temporary|_spark_metadata|__macosx)/|(_success|_(started|committed)_[^/]*|thumbs\.db|desktop\.ini)$)"
    r"|(_\$folder\$|\._copying_|\.(crdownload|filepart))$",
    re.IGNORECASE,
)
_NOT_IN_LABELS = re.compile(r"[^a-z0-9_-]+")
_RUN_ID = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LIKE_NAMED = re.compile(r"^([a-z][a-z0-9]{0,5})__")
_ITEM_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_MADE_RUN_ID = re.compile(
    rf"[a-z][a-z0-9_-]*-(\d{{8}}t\d{{6}}-[0-9a-f]{{{HASH_CHARS}}}|key-[0-9a-f]{{{KEY_HASH_CHARS}}})"
)


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """The deployment's buckets, without gs://."""

    inbox: str
    ledger: str
    models: str
    champions: str


def run_id_at(base: str, moment: datetime, identity: str) -> str:
    """`<base>-<UTC time>-<hash>`: a valid label value, the same for the same event, sorted by time.

    Args:
        base: any text; characters that a label does not allow become `-`.
        moment: when the event's cause happened; a redelivery has the same.
        identity: what distinguishes the event from every other.
    """
    return f"{_base(base)}-{exact_time(moment)[:-MICROSECOND_CHARS]}-{_hash(identity, HASH_CHARS)}"


def run_id_of_key(base: str, identity: str) -> str:
    """`<base>-key-<hash>`: no time, because messages with the same key may have different times."""
    return f"{_base(base)}-key-{_hash(identity, KEY_HASH_CHARS)}"


def run_id_in_group(group_id: str, number: int) -> str:
    """The id of the nth run of the group: it has the form of the group's, with another hash."""
    before, dash, hashed = group_id.rpartition("-")
    return f"{before}{dash}{_hash(f'{group_id}#{number}', len(hashed))}"


def exact_time(moment: datetime) -> str:
    """In UTC, to the microsecond. Years have four digits, which strftime does not guarantee."""
    utc = moment.astimezone(UTC)
    return f"{utc.year:04}{utc:%m%dt%H%M%S%f}"


def _base(text: str) -> str:
    return _legal(text, "run", LABEL_MAX_CHARS - len("-yyyymmddthhmmss-") - HASH_CHARS)


def model_name_from(text: str) -> str:
    """The model name for `text`: a dropped file's stem, a legacy job's id. Illegal characters become `-`."""
    return _legal(text, "model", LABEL_MAX_CHARS)


def _legal(text: str, before: str, room: int) -> str:
    legal = _NOT_IN_LABELS.sub("-", text.lower()).strip("-_")
    if not legal[:1].isalpha():
        legal = f"{before}-{legal}".rstrip("-")
    return legal[:room].rstrip("-_")


def _hash(identity: str, chars: int) -> str:
    # surrogatepass: an object name may not be legal UTF-8, and still has an identity.
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:chars]


def is_run_id(text: str) -> bool:
    return _RUN_ID.fullmatch(text) is not None


def has_form_of_run_id(text: str) -> bool:
    """Whether the text looks like a run id that was built here: a directory of this name belongs to a run."""
    return _MADE_RUN_ID.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """Whether an object can have this name: 1 to 1,024 bytes of UTF-8, without line breaks.

    Source: https://cloud.google.com/storage/docs/objects#naming. `..` and control characters are allowed: they mean
    nothing to the service, which has no directories.
    """
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        return False
    return 1 <= size_bytes <= OBJECT_NAME_MAX_BYTES and not {"\r", "\n"} & set(text)


def is_request_object(object_name: str) -> bool:
    """Whether an object of this name in the inbox is a request. Hidden and temporary ones are not."""
    return _is_document(REQUESTS_PREFIX, object_name)


def is_rule_object(object_name: str) -> bool:
    """Whether an object of this name in the inbox is a rule. Hidden and temporary ones are not."""
    return _is_document(RULES_PREFIX, object_name)


def _is_document(prefix: str, object_name: str) -> bool:
    is_below = object_name.startswith(prefix) and object_name.lower().endswith(REQUEST_SUFFIXES)
    return is_below and not is_temporary(object_name)


def is_put_away(object_name: str) -> bool:
    """Whether a folder of the object says that people have finished with it: `in/done/a.csv`."""
    return any(map(PUT_AWAY.fullmatch, object_name.split("/")[:-1]))


def is_temporary(object_name: str) -> bool:
    """Whether the object is not meant for the inbox: a folder marker, a hidden file, an upload part, an editor's copy.

    Source: gcloud storage and gsutil upload the parts of a file below gcloud/tmp/ and gsutil/tmp/.
    """
    return _TEMPORARY.search(object_name) is not None


def is_data(object_name: str) -> bool:
    """Whether an object of this name may be data: neither temporary or hidden, nor a marker that a program leaves beside it.

    docs/reference/rules-data.md lists these names.
    """
    return not is_temporary(object_name) and _MARKER.search(object_name) is None


def drop_folder(object_name: str) -> str | None:
    """`requests/vision/cassava.yaml` -> `vision`, also of rules; None of a file directly in requests/ or rules/."""
    folders = object_name.split("/")[1:-1]
    return folders[0] if folders else None


def in_team(team: str | None, name: str) -> str:
    """`<team>/<name>`: the name in the team's folder. Without teams, the name itself."""
    return name if team is None else f"{team}/{name}"


def stem(object_name: str) -> str:
    """`requests/vision/cassava.yaml` -> `cassava`."""
    return object_name.rpartition("/")[2].rpartition(".")[0]


def script_object(sha256: str, team: str | None) -> str:
    """Where the archive of a script is, in the data bucket."""
    return in_team(team, f"{SCRIPTS_PREFIX}{sha256}.tar.gz")


def record_object(run_id: str) -> str:
    return f"runs/{run_id}.json"


def submitted_object(run_id: str, sha256: str) -> str:
    """Where the submitted text of a request is kept. Its hash is part of the name, so that no two texts share one."""
    return f"submitted/{run_id}/{sha256[:20]}.json"


def model_files_object(run_id: str, sha256: str) -> str:
    """Where the list of a model's files is kept, named like submitted requests."""
    return f"model_files/{run_id}/{sha256[:20]}.json"


def kept_prefixes(run_id: str) -> tuple[str, ...]:
    """What the names begin with that the two functions above build for the run."""
    return f"submitted/{run_id}/", f"model_files/{run_id}/"


def report_object(run_id: str) -> str:
    return f"rejected/{run_id}.json"


def champion_object(model_name: str, team: str | None = None) -> str:
    """`champions/<model name>.json`, with teams `champions/<team>/<model name>.json`."""
    return f"{CHAMPIONS_PREFIX}{in_team(team, model_name)}.json"


def champion_copy_prefix(model_name: str, run_id: str, team: str | None) -> str:
    """Where the champions bucket holds the copy of a run's model; ends in `/`."""
    return f"{in_team(team, model_name)}/{run_id}/"


def registry_model_id(model_name: str, team: str | None, deployment: str = "") -> str:
    """`<model name>`, with teams `<team>_<model name>`: no team has `_`. What is too long for an id ends in a hash.

    Of a deployment with a name, `<name>__` comes before it. What begins so without one has `-` there, and ends in a hash.

    Source: the comment of UploadModelRequest.model_id in google/cloud/aiplatform/v1/model_service.proto.
    """
    whole = model_name if team is None else f"{team}_{model_name}"
    whole = f"{deployment}__{whole}" if deployment else whole
    own = whole if deployment else _LIKE_NAMED.sub(r"\1-", whole)
    if own == whole and len(whole) <= LABEL_MAX_CHARS:
        return whole
    return f"{own[: LABEL_MAX_CHARS - HASH_CHARS - 1]}-{_hash(whole, HASH_CHARS)}"


def job_mark_object(job_id: str) -> str:
    return f"{JOBS_PREFIX}{job_id}"


def marker_object(run_id: str) -> str:
    return f"{ACTIVE_PREFIX}{run_id}"


def tick_object(attempt: str) -> str:
    """Where a tick that is under way is marked."""
    return f"{TICKS_PREFIX}under-way/{attempt}"


def attempt_object(kind: str, name: str) -> str:
    """Where a tick's attempt at a run, a rule or a drop is kept. Another name than our ids is replaced by its hash."""
    known = name if _ITEM_ID.fullmatch(name) else _hash(name, KEY_HASH_CHARS)
    return f"{attempts_prefix(kind)}{known}"


def attempts_prefix(kind: str) -> str:
    return f"{TICKS_PREFIX}attempts/{kind}/"


def pool_object(region: str, pool_id: str) -> str:
    """Where the last use of a persistent resource is marked."""
    return f"{POOLS_PREFIX}{region}/{pool_id}"


def waiting_object(priority: int, arrived_at: datetime, run_id: str) -> str:
    """`waiting/<100 - priority>-<UTC time>-<run_id>`: a listing starts with the runs that go first."""
    return f"{WAITING_PREFIX}{100 - priority:03}-{exact_time(arrived_at)}-{run_id}"


def waiting_parts(object_name: str) -> tuple[int, datetime, str]:
    """The arguments of the `waiting_object` call that built the name.

    Raises:
        ValueError: the name has another form.
    """
    rank, time, run_id = (*object_name.removeprefix(WAITING_PREFIX).split("-", 2), "", "")[:3]
    if not is_run_id(run_id):
        raise ValueError(f"{object_name!r} is not a queue entry")
    arrived_at = datetime.fromisoformat(f"{time[:-MICROSECOND_CHARS]}.{time[-MICROSECOND_CHARS:]}Z")
    return 100 - int(rank), arrived_at, run_id


def slot_object(slot_name: str) -> str:
    """`slots/<limit>/<number>`; `slot_name` is `<limit>/<number>`."""
    return f"{SLOTS_PREFIX}{slot_name}"


def held_slot(slot_name: str, generation: int) -> str:
    """`<limit>/<number>@<generation>`, as records name a slot. The generation changes when the slot is taken again."""
    return f"{slot_name}@{generation}"


def held_slot_parts(held: str) -> tuple[str, int]:
    """The arguments of the `held_slot` call that built the text.

    Raises:
        ValueError: the text has another form.
    """
    slot_name, _, generation = held.rpartition("@")
    if not slot_name or not generation.isdecimal():
        raise ValueError(f"{held!r} is not the name of a held slot")
    return slot_name, int(generation)


def started_prefix(day: date) -> str:
    """The prefix of the marks of runs started on that day (UTC)."""
    return f"{STARTED_PREFIX}{day.isoformat()}/"


def started_object(moment: datetime, run_id: str) -> str:
    """`started/<UTC day>/<UTC hour>/<run_id>`."""
    utc = moment.astimezone(UTC)
    return f"{started_prefix(utc.date())}{utc:%H}/{run_id}"


def started_hour(object_name: str) -> datetime | None:
    """The start of the hour in a name that `started_object` built; None for any other name."""
    try:
        day, hour, _ = object_name.removeprefix(STARTED_PREFIX).split("/")
        return datetime.combine(date.fromisoformat(day), time(int(hour)), UTC)
    except ValueError:
        return None


def settled_object(moment: datetime, run_id: str) -> str:
    """`started/<UTC day>/ended/<run_id>`: what a run of that day cost. It sorts after the day's marks of starts."""
    return f"{started_prefix(moment.astimezone(UTC).date())}ended/{run_id}"


def cap_object(window: str) -> str:
    """Where it is recorded that a cap was reached and reported: `caps/runs_per_hour/2026-11-21T13.json`."""
    return f"caps/{window}.json"


def run_id_of_marker(object_name: str) -> str:
    return object_name.removeprefix(ACTIVE_PREFIX)


def status_object(dropped_name: str) -> str:
    """`status/<full name of the dropped object>.json`; a name that is too long or unsafe ends in a hash instead.

    Unsafe: non-printable characters and the components `.`, `..` and '', which a listing or a copy to a disk would
    misread; and names in the folders of the messages' statuses.
    """
    return _status_object(dropped_name, is_odd=dropped_name.startswith(_STATUSES_OF_MESSAGES))


def message_status_object(message_id: str, idempotency_key: str | None, team: str | None = None) -> str:
    """`status/keys/<key>.json` of a message with an idempotency key, else `status/messages/<message id>.json`.

    With teams, a message's team comes before its key or id: `status/keys/<team>/<key>.json`. A key or id that
    is too long or unsafe is replaced as in `status_object`.
    """
    prefix, name = ("keys/", idempotency_key) if idempotency_key else ("messages/", message_id)
    return _status_object(f"{prefix}{in_team(team, name)}")


def _status_object(name: str, *, is_odd: bool = False) -> str:
    hashed = _hash(name, KEY_HASH_CHARS)
    if is_odd or not name.isprintable() or {"", ".", ".."} & set(name.split("/")):
        return f"status/odd-name-{hashed}.json"
    whole = f"status/{name}.json"
    return whole if len(whole.encode()) <= OBJECT_NAME_MAX_BYTES else f"status/long-name-{hashed}.json"


def object_uri(bucket: str, object_name: str) -> str:
    return f"gs://{bucket}/{object_name}"


def split_object_uri(uri: str) -> tuple[str, str]:
    """Bucket and object name (possibly empty) in a `gs://` URI.

    Raises:
        ValueError: the text is not a `gs://` URI with a bucket.
    """
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not uri.startswith("gs://") or not bucket:
        raise ValueError(f"{uri!r} is not a gs://bucket/object URI")
    return bucket, name


def output_uri(prefix_uri: str, model_name: str, run_id: str) -> str:
    """The run's directory, which is its `baseOutputDirectory`; no trailing slash."""
    return f"{prefix_uri.rstrip('/')}/{model_name}/{run_id}"


def output_prefix_uri(run_output_uri: str) -> str:
    """The prefix that was passed to `output_uri`."""
    return run_output_uri.rsplit("/", 2)[0]


def model_uri(run_output_uri: str) -> str:
    """AIP_MODEL_DIR below this `baseOutputDirectory`, with a trailing slash.

    Source: https://cloud.google.com/vertex-ai/docs/training/code-requirements
    """
    return f"{run_output_uri}/model/"


def trial_output_uri(run_output_uri: str, trial_id: str) -> str:
    """Where one trial writes: its `baseOutputDirectory`.

    Source: https://cloud.google.com/vertex-ai/docs/training/code-requirements
    """
    return f"{run_output_uri}/{trial_id}"
