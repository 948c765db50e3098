"""`trainmaster inspect`: from the options to an exit status."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from types import FrameType

from trainmaster.inspect.checks import findings_of
from trainmaster.inspect.checks.examined import Examined
from trainmaster.inspect.finding import Finding, Level, Subject, Unusable, as_json_lines, as_text
from trainmaster.inspect.request import Request, read_request
from trainmaster.inspect.smoke.judge import judged, resolved
from trainmaster.inspect.smoke.run import SmokeRun
from trainmaster.inspect.smoke.stage import inherited
from trainmaster.inspect.smoke.watch import Limits
from trainmaster.inspect.source.tree import Tree, find_program, tree_at
from trainmaster.inspect.surroundings import Surroundings, surroundings_of, tensorflow_of
from trainmaster.orchestrator.core.requests.spec import Script
from trainmaster.resources import ROOT

TRAINER = "trainer"
DEFAULT_MODULE = "trainer.task"
GCS_ROOT_VARIABLE = "TRAINMASTER_GCS_ROOT"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command's options. `program` is the words after `--`; it implies a smoke run."""

    tree: Path
    request: Path | None
    module: str | None
    smoke: bool
    smoke_timeout_s: int
    keep_output: Path | None
    as_json: bool
    program: tuple[str, ...]


def main(options: Options, environment: Mapping[str, str]) -> int:
    """Run the inspection and return its exit status. A smoke run's replicas inherit only part of `environment`."""
    try:
        findings = _findings(options, environment)
    except Unusable as unusable:
        for fault in unusable.faults:
            print(fault, file=sys.stderr)  # noqa: T201 - a command
        return 2
    try:
        print(as_json_lines(findings) if options.as_json else as_text(findings), flush=True)  # noqa: T201 - a command
    except BrokenPipeError:  # a reader such as `head` may stop early; that is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(any(finding.level is Level.ERROR for finding in findings))


def _findings(options: Options, environment: Mapping[str, str]) -> list[Finding]:
    request = None if options.request is None else read_request(options.request)
    tree = tree_at(options.tree)
    surroundings = surroundings_of(tree.root)
    if request is not None and surroundings.tensorflow is None:
        surroundings = replace(surroundings, tensorflow=tensorflow_of(request.program.image))
    module = _module(tree, options, request, surroundings)
    program = find_program(tree, module)
    examined = Examined(program=program, surroundings=surroundings, request=request)
    static = [*_module_elsewhere(tree, options, request), *findings_of(examined)]
    if not (options.smoke or options.program):
        return static
    run = _smoke_run(tree, module, options, examined, environment)
    with _ended_in_order():
        return resolved(static, judged(run.outcomes(), request))


def _smoke_run(
    tree: Tree, module: str | None, options: Options, examined: Examined, environment: Mapping[str, str]
) -> SmokeRun:
    entries = examined.program.entries
    if not options.program and len(entries) != 1:
        raise Unusable(
            f"A smoke run needs one file to start, but {len(entries)} files qualify: name one with --module, "
            f"or give the program after `--`."
        )
    return SmokeRun(
        command=_command(options.program, module or entries[0].path, tree.root),
        root=tree.root,
        variables=_variables(tree, environment, examined),
        request=examined.request,
        replicas=1 if examined.is_alone else 2,
        uses_uris=examined.program.mention(GCS_ROOT_VARIABLE) is not None,
        limits=Limits(whole_s=options.smoke_timeout_s),
        keep=options.keep_output,
    )


def _module_elsewhere(tree: Tree, options: Options, request: Request | None) -> Iterator[Finding]:
    """That the request starts a module which is not what was examined."""
    module = None if request is None else request.module
    if module is None or options.module is not None or options.tree.is_file():
        return
    if tree.file_of(module) is None:
        yield Subject.SOURCE.unknown(
            f"whether the request's module {module!r} runs: it is not in {options.tree}, so all files there were "
            "examined",
            repair="Name the tree that its package is built from, or correct the request's module; without it "
            "every replica exits with status 1.",
        )


def _module(tree: Tree, options: Options, request: Request | None, surroundings: Surroundings) -> str | None:
    """The module that is run: as asked for, as behind `--`, as the request or the Dockerfile says; else not known."""
    if options.module is not None:
        return options.module
    named = find_modules(options.program) if _is_program(options.program) else []
    if not named and not tree.given.is_file():
        asked = [] if request is None else [*filter(None, [request.module]), *find_modules(request.command)]
        named = [*asked, *find_modules(surroundings.command)]
    usual = [] if tree.given.is_file() else [DEFAULT_MODULE]
    return next((name for name in [*named, *usual] if tree.file_of(name) is not None), None)


def find_modules(words: Sequence[str]) -> list[str]:
    """What `python -m trainer.task` or `python /app/trainer/task.py` may be called in a tree, the longest first.

    Empty where no Python program is seen. Of a launcher, `python -m trainer.launch … -- python train.py`, it is
    the program behind the dashes.
    """
    if "--" in words and (launched := find_modules(words[list(words).index("--") + 1 :])):
        return launched
    if "-m" in words[:-1]:
        return [words[list(words).index("-m") + 1]]
    script = next((word for word in words if word.endswith(".py") and not word.startswith("-")), None)
    if script is None:
        return []
    parts = [part for part in PurePosixPath(script).with_suffix("").parts if part not in {"/", "."}]
    return [".".join(parts[start:]) for start in range(len(parts))]


def _is_program(words: Sequence[str]) -> bool:
    """Whether these words begin with a program, rather than with a flag for one."""
    return bool(words) and not words[0].startswith("-")


def _command(program: Sequence[str], started: str | Path, root: Path) -> list[str]:
    """The command to run in `root`: the program after `--`, or the module with the arguments after `--`."""
    if not _is_program(program):
        start = ["-m", started] if isinstance(started, str) else [str(started)]
        return [sys.executable, *start, *program]
    # A file is meant as seen from where the command was called, unless the root has one of that name.
    words = [
        str(Path(word).absolute()) if Path(word).is_file() and not (root / word).exists() else word
        for word in program
    ]
    return [sys.executable if words[0] in {"python", "python3"} else words[0], *words[1:]]


def _variables(tree: Tree, environment: Mapping[str, str], examined: Examined) -> dict[str, str]:
    variables = inherited(environment, examined.variables)
    paths = [str(place) for place in tree.search[1:] if place.is_dir()]
    images = [str(ROOT)] if _finds_trainer(examined) else []
    variables["PYTHONPATH"] = ":".join([*paths, *filter(None, [environment.get("PYTHONPATH")]), *images])
    return variables


def _finds_trainer(examined: Examined) -> bool:
    """Whether the program imports the package of the trainer's image, in which scripts run."""
    request = examined.request
    imports = any(name.partition(".")[0] == TRAINER for name in examined.program.unread)
    return imports and (request is None or isinstance(request.program, Script))


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM unwind the stack, so that the replicas end with this process."""

    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
