"""`trainmaster inspect`: from the options to an exit status."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.inspect.checks import findings_of
from trainmaster.inspect.finding import Level, ProgramFinding, UnusableProgram, as_json_lines, as_text
from trainmaster.inspect.request import ProgramRequest, read_request
from trainmaster.inspect.smoke.judge import resolve
from trainmaster.inspect.smoke.run import SmokeRun, handling
from trainmaster.inspect.smoke.stage import inherited_variables
from trainmaster.inspect.smoke.uris import paths_for
from trainmaster.inspect.smoke.watch import Limits
from trainmaster.inspect.start import Examined, Surroundings, split_start, surroundings_of
from trainmaster.inspect.tree import Tree, read_source, tree_at
from trainmaster.orchestrator.core.requests.spec import PythonPackage, Script
from trainmaster.resources import ROOT

DEFAULT_MODULE = "trainer.task"


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """The command's options. `program` is the words after `--`; it implies a smoke run."""

    tree: Path
    request: Path | None
    module: str | None
    smoke: bool
    smoke_timeout_s: int
    keep_output: Path | None
    as_json: bool
    program: tuple[str, ...]

    @property
    def starts_program(self) -> bool:
        """Whether the words after `--` begin with a program, rather than with an argument for one."""
        return bool(self.program) and not self.program[0].startswith("-")


def main(options: InspectOptions, environment: Mapping[str, str]) -> int:
    """Run the inspection and return its exit status. A smoke run's replicas inherit only part of `environment`."""
    try:
        findings = _findings(options, environment)
    except UnusableProgram as unusable:
        for fault in unusable.faults:
            print(fault, file=sys.stderr)  # noqa: T201 - a command
        return 2
    try:
        print(as_json_lines(findings) if options.as_json else as_text(findings), flush=True)  # noqa: T201 - a command
    except BrokenPipeError:  # a reader such as `head` may stop early; that is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(any(finding.level is Level.ERROR for finding in findings))


def _findings(options: InspectOptions, environment: Mapping[str, str]) -> list[ProgramFinding]:
    request = None if options.request is None else read_request(options.request)
    tree = tree_at(options.tree)
    surroundings = surroundings_of(tree.root)
    module = _module(tree, options, request, surroundings)
    examined = Examined(source=read_source(tree, module), surroundings=surroundings, request=request)
    static = findings_of(examined)
    if not (options.smoke or options.program):
        return static
    run = _smoke_run(tree, module, options, examined, environment)
    # It unwinds the stack, so that the replicas end with this process.
    with handling(signal.SIGTERM, lambda number: sys.exit(128 + number)):
        return resolve(static, run.findings())


def _smoke_run(
    tree: Tree,
    module: str | None,
    options: InspectOptions,
    examined: Examined,
    environment: Mapping[str, str],
) -> SmokeRun:
    entries, request = examined.source.entries, examined.request
    if not options.starts_program and len(entries) != 1:
        raise UnusableProgram(
            f"A smoke run needs one file to start, but {len(entries)} files qualify: name one with --module, "
            f"or give the program after `--`."
        )
    if options.starts_program:
        command = _given_command(options.program, tree.root)
    else:
        start = ["-m", module] if module else [str(entries[0].path)]
        command = [sys.executable, *start, *examined.start.arguments, *options.program]
    return SmokeRun(
        command=command,
        root=tree.root,
        variables=_variables(tree, environment, examined),
        request=request,
        replicas=1 if request is not None and not request.workers else 2,
        takes_flags=options.starts_program or not examined.start.drops_arguments,
        paths=paths_for(examined.source),
        limits=Limits(whole_s=options.smoke_timeout_s),
        keep=options.keep_output,
    )


def _module(
    tree: Tree, options: InspectOptions, request: ProgramRequest | None, surroundings: Surroundings
) -> str | None:
    """The module that is run: as asked for, as behind `--`, as the request or the Dockerfile says; else not known."""
    if options.module is not None:
        return options.module
    names = split_start(options.program)[0] if options.starts_program else []
    if not names and not tree.given.is_file():
        if request is not None and isinstance(request.program, PythonPackage):
            return request.program.module
        names = split_start(request.command)[0] if request is not None else []
        names += [*split_start((*surroundings.entrypoint, *surroundings.cmd))[0], DEFAULT_MODULE]
    return next((name for name in names if tree.file_of(name) is not None), None)


def _given_command(program: Sequence[str], root: Path) -> list[str]:
    """The program after `--`: a file is meant as seen from where the command was called, unless `root` has one."""
    words = [
        str(Path(word).absolute()) if Path(word).is_file() and not (root / word).exists() else word
        for word in program
    ]
    return [sys.executable if words[0] in {"python", "python3"} else words[0], *words[1:]]


def _variables(tree: Tree, environment: Mapping[str, str], examined: Examined) -> dict[str, str]:
    """What the replicas inherit. Scripts, which run in the trainer's image, find its package."""
    request = examined.request
    declared = {**examined.surroundings.variables, **(request.program.env if request is not None else {})}
    is_script = request is None or isinstance(request.program, Script)
    finds_trainer = is_script and any(f"{name}.".startswith("trainer.") for name in examined.source.unread)
    paths = [*(str(place) for place in tree.search[1:] if place.is_dir()), environment.get("PYTHONPATH", "")]
    paths += [str(ROOT)] if finds_trainer else []
    return {**inherited_variables(environment, declared), "PYTHONPATH": ":".join(filter(None, paths))}
