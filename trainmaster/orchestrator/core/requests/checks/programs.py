"""Faults of what roles run: words that no replica would use, programs that would end at once, retired containers.

Templates that nothing filled in and references that stay text are only warned of: the program may fill them in itself.

Google's prebuilt training containers are listed with the end of their patches and of their availability.
After the end of its availability, says the policy, a container can no longer be used: "services might block the
creation of new resources using these images, and the images are no longer available for download". So a request
for one is refused, unless the deployment's policy says `retired_images: warn`.

The list gives no first dates. A container that it does not name, a newer one for example, is not checked.

Sources, read 2026-11-22:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/pre-built-containers and
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/framework-support-policy
(before: https://cloud.google.com/vertex-ai/docs/training/pre-built-containers).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice

from trainmaster.orchestrator.core.documents.faults import Fault, nearest
from trainmaster.orchestrator.core.documents.values import Path, at, list_at, mapping_at
from trainmaster.orchestrator.core.names import LABEL_MAX_CHARS
from trainmaster.orchestrator.core.policy.policy import RetiredImages
from trainmaster.orchestrator.core.requests.draft import SCRIPT, Draft, Running, names_program
from trainmaster.orchestrator.core.requests.placeholders import text_with_values

MAX_WARNED = 20
"""Of one request: the first ones say enough, and its record keeps them all."""
_TEMPLATE = re.compile(
    r"\{\{[^{}\n]{1,200}\}\}|\{%[^%\n]{1,200}%\}|\$\{[A-Z_][A-Z0-9_]*\}|(?<!\$)\$(?:[A-Za-z_]\w*|\{(?!run_id\}|trial\})\w+\})"
    r"|%[A-Z_][A-Z0-9_]{2,}%|<(?i:your|my|insert|enter)[ _-][^<>\n]{1,80}>|<[A-Z]+[_-][A-Z0-9_-]+>"
    r"|\bYOUR[_-][A-Z0-9_-]+|\byour-(?:bucket|data|dataset|image|project|region|repository)\b[\w-]*"
)
"""Of shells, Jinja and Go, of Windows, and of people's examples. `$$` is how the service writes one `$`."""
_SHELL = re.compile(r"(?:.*/)?(?:a|ba|da|k|z)?sh")
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_REFERENCE = re.compile(r"(?<!\$)\$\(([A-Za-z_]\w*)\)")
_OF_SERVICE = re.compile(r"(AIP|CLOUD_ML|TRAINMASTER)_\w+|TF_CONFIG|CLUSTER_SPEC")
READ_ON = date(2026, 11, 22)
WARNED_BEFORE = timedelta(days=90)
"""How long before its end a container is warned about."""


@dataclass(frozen=True, kw_only=True)
class PrebuiltContainer:
    """Containers of one row of the list; `names` is an expression, without repository and tag."""

    names: str
    patched_until: date
    available_until: date


def _row(names: str, patched_until: str, available_until: str) -> PrebuiltContainer:
    return PrebuiltContainer(
        names=names,
        patched_until=date.fromisoformat(patched_until),
        available_until=date.fromisoformat(available_until),
    )


CONTAINERS: Sequence[PrebuiltContainer] = (
    _row(r"tf-(cpu|gpu)\.2-17\.py310", "2025-07-11", "2026-07-11"),
    _row(r"tf-(cpu|gpu)\.2-16\.py310", "2025-06-28", "2026-06-28"),
    _row(r"tf-(cpu|gpu)\.2-15\.py310", "2024-11-14", "2025-11-14"),
    _row(r"tf-tpu\.2-15\.cp310", "2024-10-23", "2025-10-23"),
    _row(r"tf-(cpu|gpu)\.2-14\.py310", "2024-09-26", "2025-09-26"),
    _row(r"tf-(cpu|gpu)\.2-13\.py310", "2024-07-05", "2025-07-05"),
    _row(r"tf-(cpu|gpu)\.2-12\.py310|tf-tpu\.2-12", "2024-06-30", "2025-06-30"),
    _row(r"tf-(cpu|gpu)\.2-(8|9|11)(\.py310)?", "2023-11-15", "2024-11-15"),
    _row(r"tf-(cpu|gpu)\.(1-15|2-[1-7])", "2023-09-01", "2024-09-01"),
    _row(r"pytorch-(xla|gpu)\.2-4\.py310", "2025-07-24", "2026-07-24"),
    _row(r"pytorch-(xla|gpu)\.2-3\.py310", "2025-04-24", "2026-04-24"),
    _row(r"pytorch-xla\.2-2\.py310", "2025-01-30", "2026-10-23"),
    _row(r"pytorch-gpu\.2-2\.py310", "2025-01-30", "2026-01-30"),
    _row(r"pytorch-tpu\.2-2\.cp310", "2024-11-06", "2025-11-06"),
    _row(r"pytorch-(xla|gpu)\.2-1\.py310", "2024-10-04", "2025-10-04"),
    _row(r"pytorch-tpu\.2-1\.cp310", "2024-10-23", "2025-10-23"),
    _row(r"pytorch-(xla|gpu)\.2-0\.py310", "2024-03-15", "2025-03-15"),
    _row(r"pytorch-tpu\.2-0|pytorch-gpu\.1-1[23]\.py310", "2024-05-15", "2025-05-15"),
    _row(r"pytorch-gpu\.1-13", "2023-12-08", "2024-12-08"),
    _row(
        r"pytorch-gpu\.1-12|pytorch-(xla|gpu)\.1-(6|7|9|10|11)|pytorch-(cpu|gpu)\.1-4",
        "2023-09-01",
        "2024-09-01",
    ),
    _row(r"sklearn-(cpu|gpu)\.1-6|xgboost-(cpu|gpu)\.2-1", "2025-07-11", "2026-07-11"),
    _row(r"sklearn-(cpu|gpu)\.1-0|xgboost-(cpu|gpu)\.1-6", "2024-06-30", "2025-06-30"),
    _row(r"xgboost-cpu\.1-1", "2023-11-15", "2024-11-15"),
    _row(r"scikit-learn-cpu\.0-23", "2023-09-01", "2024-09-01"),
    _row(r"ray-(cpu|gpu)\.2-47\.py311", "2026-07-28", "2027-07-28"),
    _row(r"ray-(cpu|gpu)\.2-42\.py31[01]", "2026-03-01", "2027-03-01"),
    _row(r"ray-(cpu|gpu)\.2-33\.py310", "2025-09-16", "2026-09-16"),
)
_IMAGE = re.compile(r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/(?P<name>[^/:@]+)([:@].*)?")
_REPAIR = (
    "build your own image and name it "
    "(docs/how-to/ai-platform.md#packages-in-your-own-image shows one for Python packages)"
)


def container_of(image: str) -> PrebuiltContainer | None:
    """The row of the list that has the image; None for any other image."""
    match = _IMAGE.fullmatch(image)
    rows = (row for row in CONTAINERS if match and re.fullmatch(row.names, match["name"]))
    return next(rows, None)


def prebuilt_faults(draft: Draft, today: date) -> list[Fault]:
    """Every prebuilt container of the request that is no longer available, unless the policy lets them pass."""
    return list(_ended_containers(draft, today)) if _retired_images(draft) is RetiredImages.REFUSE else []


def prebuilt_warnings(draft: Draft, today: date) -> Iterator[Fault]:
    """Every prebuilt container that ends soon, and those that have ended where the policy lets them pass."""
    if _retired_images(draft) is RetiredImages.WARN:
        yield from _ended_containers(draft, today)
    for path, image, container in _containers_used(draft):
        if today <= container.available_until <= today + WARNED_BEFORE:
            yield Fault(
                at=path,
                problem=f"the prebuilt container is available only until {container.available_until} only, "
                f"and was patched until {container.patched_until}",
                value=image,
                repair=f"before that day, {_REPAIR}",
            )


def _ended_containers(draft: Draft, today: date) -> Iterator[Fault]:
    for path, image, container in _containers_used(draft):
        if container.available_until < today:
            yield Fault(
                at=path,
                problem=f"the prebuilt container has been unavailable since {container.available_until}, "
                f"according to Google's list of {READ_ON}",
                value=image,
                repair=_REPAIR,
            )


def _containers_used(draft: Draft) -> Iterator[tuple[Path, str, PrebuiltContainer]]:
    for path, image in draft.images.items():
        if (container := container_of(image)) is not None:
            yield path, image, container


def _retired_images(draft: Draft) -> RetiredImages:
    return draft.policy.retired_images if draft.policy is not None else RetiredImages.REFUSE


ENV_MOST = 100
"""Variables of one replica: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#ContainerSpec"""
ARGS_MOST_CHARS = 100_000
"""Of the arguments and commands of all roles together: https://cloud.google.com/vertex-ai/docs/training/create-custom-job"""
_WORDS = ("command", "args", "env")
_SCRIPT_KEYS = frozenset({"file", "module", "root", "extras", "groups", "launcher", "archive"})
_TWO_WORDS = re.compile(r"(--?[A-Za-z][\w.-]*) (\S+)")

PARAMETER_SERVER = "parameter_server"
WITHOUT_SERVERS = ("multi_worker_mirrored", "mirrored", "one_device", "tpu")
STRATEGIES = ("auto", PARAMETER_SERVER, *WITHOUT_SERVERS)
OF_ONE_MACHINE = ("mirrored", "one_device", "tpu")
_FLAG = "--strategy"


def program_faults(draft: Draft) -> Iterator[Fault]:
    """Programs that no role runs, commands that packages cannot have, and what is beyond the service's limits.

    The same words apply to several roles: each place is reported once.
    """
    faults = (*_unheard(draft), *_commands(draft), *_script(draft), *_limits(draft))
    yield from {fault.path: fault for fault in reversed(faults)}.values()


def _unheard(draft: Draft) -> Iterator[Fault]:
    """What the request says at its top is for roles that name no program; there may be none."""
    if not names_program(draft.roles.get("chief", {})):
        return
    unused: tuple[str, ...] = ("image", "python_package", SCRIPT)
    if all(map(names_program, draft.roles.values())):
        unused = (*unused, *_WORDS)
    for key in unused:
        if key in draft.document:
            yield Fault(
                at=(key,),
                problem="no replica would use this: the chief has its own program, "
                "and a role with its own program inherits nothing",
                value=draft.document[key],
                repair=f"remove it, or move it to cluster.chief.{key}",
            )


def _commands(draft: Draft) -> Iterator[Fault]:
    for role in draft.roles:
        runs = draft.running[role]
        is_own = runs.command_at in (None, (*runs.named_at, "command"))
        if runs.package is not None and not is_own:
            started = "a Python package is started by its module"
        elif runs.script is not None and runs.command_at is not None:
            started = "Python runs the script"
        else:
            continue
        yield Fault(
            at=runs.command_at,
            problem=f"{started}, but {role} would run a command",
            value=runs.command,
            repair=f"remove it, or name the image it belongs to as cluster.{role}.image",
        )


def _script(draft: Draft) -> Iterator[Fault]:
    """What a script still lacks when it reaches the service."""
    if not any(draft.running[role].script is not None for role in draft.roles):
        return
    script = mapping_at(draft.document, SCRIPT)
    named, is_packed = script.keys() & {"file", "module"}, script.get("archive") is not None
    if len(named) > 1:
        repair = "name the file or the module, and remove the other"
        yield Fault(at=(SCRIPT, "module"), problem="a script is a file or a module, not both", repair=repair)
    elif named and not is_packed and script.keys() <= _SCRIPT_KEYS:
        # Where the schema has another fault in `script`, that is the one to repair.
        yield Fault(
            at=(SCRIPT, "archive"),
            problem="missing: the script was not uploaded",
            repair="submit a request with `trainmaster submit FILE`, or apply a rule with `trainmaster rules apply FILE`: "
            "they upload the script",
        )
    if at(draft.document, "image") is None:
        yield Fault(
            at=("image",),
            problem="missing: the script needs an image with Python, and no policy names one as script_image",
            repair="name an image",
        )


def _limits(draft: Draft) -> Iterator[Fault]:
    of_environment = 0 if draft.cluster.get("replica_environment") in (None, "vertex") else 1
    for role, pool in draft.roles.items():
        runs = draft.running[role]
        mine = of_environment + (runs.script is not None)
        if len(runs.env) + mine > ENV_MOST:
            also = ", one of them for replica_environment" if of_environment else ""
            yield Fault(
                at=("cluster", role, "env") if "env" in pool else ("env",),
                problem="too many environment variables, including the service's own",
                found=f"{len(runs.env) + mine}{also}",
                allowed=f"at most {ENV_MOST}",
            )
    running = [draft.running[role] for role in draft.roles]
    # Of the arguments as the program is given them: a run's id may be longer than its placeholder.
    words = ([word for word in runs.args if isinstance(word, str)] for runs in running)
    given = [[text_with_values(word, run_id="r" * LABEL_MAX_CHARS) for word in texts] for texts in words]
    lengths = [_chars(runs.command) + _chars(args) for runs, args in zip(running, given, strict=True)]
    if sum(lengths) > ARGS_MOST_CHARS:
        longest = running[lengths.index(max(lengths))]
        yield Fault(
            at=longest.args_at if longest.args else longest.command_at or ("command",),
            problem="the arguments are too long",
            found=f"{sum(lengths)} characters in the commands and arguments of all roles",
            allowed=f"at most {ARGS_MOST_CHARS} characters in total",
            repair="put long values in a file that the program reads, and pass its name",
        )


def _chars(words: object) -> int:
    return sum(len(word) for word in words if isinstance(word, str)) if isinstance(words, Sequence) else 0


def strategy_faults(draft: Draft, *, reduces: bool) -> Iterator[Fault]:
    """Every `--strategy` of this repository's trainer that its cluster contradicts, each place once.

    The trainer says so itself when it starts, but that is after the machines were paid for. Only images that the
    policy knows to run it are checked: another program's `--strategy` may mean anything. `reduces`: worker pool 2
    holds reduction servers, which no strategy asks for.
    """
    roles = set(draft.cluster)
    servers = "parameter_servers" in roles and not reduces
    faults: dict[str, Fault] = {}
    for runs in map(draft.running.__getitem__, draft.roles):
        row = draft.flags_of(runs)
        asked = find_strategy(runs.args) if row is not None and row.runs_trainer else None
        if asked is None:
            continue
        index, strategy = asked
        problem, repair = _contradiction(strategy, roles, servers=servers)
        if problem:
            among = None if strategy in STRATEGIES else STRATEGIES
            path, said = (*runs.args_at, index), f"{_FLAG}={strategy}"
            fault = Fault(at=path, problem=problem, value=said, among=among, repair=repair)
            faults[fault.path] = fault
    yield from faults.values()


def find_strategy(args: Sequence[object]) -> tuple[int, str] | None:
    """The strategy that the arguments ask for, and which of them does; the last one counts."""
    last = None
    for index, word in enumerate(args):
        name, equals, value = word.partition("=") if isinstance(word, str) else ("", "", "")
        if name == _FLAG:
            after = args[index + 1] if index + 1 < len(args) else None
            is_value = isinstance(after, str) and not after.startswith("--")
            last = (index, value if equals else str(after) if is_value else "")
    return last


def _contradiction(strategy: str, roles: set[str], *, servers: bool) -> tuple[str, str]:
    """What is wrong, and the repair; both empty where nothing is."""
    if strategy not in STRATEGIES:
        problem = "the trainer has no such strategy, so every replica would exit with status 2"
        return problem, nearest(strategy, STRATEGIES)
    if servers and strategy in WITHOUT_SERVERS:
        return (
            "this strategy does not use parameter servers, but the cluster has some",
            f"write {_FLAG}={PARAMETER_SERVER}, or leave parameter_servers out of the cluster",
        )
    if strategy == PARAMETER_SERVER and not (servers and "workers" in roles):
        return (
            "this strategy needs parameter servers and workers",
            f"add both to the cluster, or leave {_FLAG} out",
        )
    if strategy in OF_ONE_MACHINE and "workers" in roles:
        return (
            "this strategy trains on one machine, so every worker would train a separate model",
            f"write {_FLAG}=multi_worker_mirrored, or leave workers out of the cluster",
        )
    return "", ""


def program_warnings(draft: Draft) -> Iterator[Fault]:
    """The first of the doubts about what each role's program is given."""
    found = (fault for role in draft.roles for fault in _of_program(draft.running[role]))
    yield from dict.fromkeys(islice(found, MAX_WARNED))


def _of_program(runs: Running) -> Iterator[Fault]:
    words = [((*(runs.command_at or ()), index), word) for index, word in enumerate(list_at(runs.command))]
    words += [((*runs.args_at, index), word) for index, word in enumerate(runs.args)]
    env = list(runs.env.values())
    first = [str(word) for _, word in words[:6]]
    if not (any(map(_SHELL.fullmatch, first[:2])) and any(map(_SHELL_TEXT.fullmatch, first))):
        yield from _templates([*words, *env])
        for path, word in words:
            yield from _references(path, word, runs.env, "the role has no variable of this name")
            if two := _TWO_WORDS.fullmatch(str(word)):
                problem = "holds two words, and reaches the program as one"
                repair = f"write {two[1]}={two[2]}, or two elements"
                yield Fault(at=path, problem=problem, value=word, repair=repair)
    for number, (path, value) in enumerate(env):
        yield from _references(path, value, [*runs.env][:number], "no variable of this name comes before it")
        # https://github.com/PrefectHQ/prefect/issues/5940, https://github.com/kubeflow/pipelines/issues/10111
        if not value or "'" in str(value):
            which = "an apostrophe in a" if value else "an empty"
            problem = f"Vertex AI is reported to refuse {which} variable"
            yield Fault(at=path, problem=problem, value=value, repair="write another value, or leave it out")


def _templates(texts: Iterable[tuple[Path, object]]) -> Iterator[Fault]:
    for path, text in texts:
        if template := _TEMPLATE.search(str(text)):
            problem = f"{template[0]} looks like a template that was not filled in"
            repair = "write its value, if nothing else fills it in"
            yield Fault(at=path, problem=problem, value=text, repair=repair)


def _references(path: Path, text: object, known: Collection[str], why: str) -> Iterator[Fault]:
    """References to variables that the service leaves as they are, because it does not know them there."""
    for reference in _REFERENCE.finditer(str(text)):
        if reference[1] not in known and not _OF_SERVICE.fullmatch(reference[1]):
            repair = f"set {reference[1]} before it, or write the value out"
            yield Fault(at=path, problem=f"{reference[0]} stays this text: {why}", value=text, repair=repair)
