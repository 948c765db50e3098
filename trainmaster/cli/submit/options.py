"""The options of `submit`, and what they mean together."""

import functools
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.runs.following import require_model_option, timeout_option
from trainmaster.client.context import Context
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.script import LAUNCHERS

set_option = click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
                          help="replace a value of the request, for example cluster.chief.machine=n1-standard-8; repeatable")  # fmt: skip
_OPTIONS = (
    click.option("--script", type=click.Path(path_type=Path), metavar="PATH",
                 help="pack and run this Python script, with its project"),
    click.option("--module", metavar="NAME", help="run this module of the project instead, as python -m does"),
    click.option("--root", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
                 help="the project to pack; default: the nearest folder upwards with pyproject.toml, setup.py or .git"),
    click.option("--launcher", type=click.Choice(LAUNCHERS), help="what starts the script, a process for each GPU"),
    click.option("--force", is_flag=True, help="send a script that will certainly end at once"),
    click.option("--image", metavar="DIR|URI", help="the image to run; a folder with a Dockerfile on a local stack"),
    click.option("--name", metavar="MODEL", help="the model's name"),
    click.option("--gpu", metavar="TYPE[:N]", help="GPUs of each replica, for example L4:1; chooses the machine"),
    click.option("--machine", metavar="TYPE", help="machine type of each replica"),
    click.option("--workers", type=click.IntRange(0), metavar="N", help="replicas beside the chief, on its machine"),
    set_option,
    click.option("--matrix", multiple=True, metavar="NAME=V,V", help="a run for each of these values of an argument, or each combination; repeatable"),
    click.option("--key", metavar="KEY", help="publish the request with this idempotency key instead of uploading it"),
)  # fmt: skip
yes_option = click.option("--yes", is_flag=True, help="do not ask, whatever the runs may cost")
_PATHS = ("/", "./", "../", "~/")
"""How a path begins, and no image's URI."""
_REQUESTS = (".yaml", ".yml", ".json")
_IMAGE = "HOST/PROJECT/REPOSITORY/IMAGE with :tag or @sha256:digest"
_FOLLOWING = (
    click.option("--wait", "waits", is_flag=True, help="wait for the end of each run"),
    click.option("--logs", "shows_logs", is_flag=True, help="print the log until the run has ended"),
)


def submit_options(verb: Callable[..., int]) -> Callable[..., int]:
    """All options but those of every verb."""
    verb = following_options(yes_option(verb))
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


@dataclass(frozen=True, kw_only=True)
class Following:
    """How a verb follows the runs that it starts."""

    waits: bool
    shows_logs: bool
    requires_model: bool
    timeout_s: float | None

    @property
    def faults(self) -> list[str]:
        """Options that need another one."""
        needing = {"--timeout": self.timeout_s is not None, "--require-model": self.requires_model}
        if self.waits or self.shows_logs:
            return []
        return [f"{option} needs --wait or --logs." for option, is_given in needing.items() if is_given]


def following_options(verb: Callable[..., int]) -> Callable[..., int]:
    """`--wait`, `--logs`, `--require-model` and `--timeout`, as `following`."""

    @functools.wraps(verb)
    def run(*arguments: Any, **options: Any) -> int:  # Any: the verb's own, and the fields of Following
        following = Following(**{each.name: options.pop(each.name) for each in fields(Following)})
        return verb(*arguments, following=following, **options)

    run = timeout_option(require_model_option(run))
    for option in reversed(_FOLLOWING):
        run = option(run)
    return run


class WithArguments(click.Command):
    """Gives its function every word behind `--` as `arguments`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words before `--` are click's."""
        end = args.index("--") if "--" in args else len(args)
        ctx.params["arguments"] = tuple(args[end + 1 :])
        try:
            return super().parse_args(ctx, args[:end])
        except click.NoSuchOption as unknown:
            if not any(
                word.startswith(("--script", "--module")) or word.endswith(_REQUESTS) for word in args[:end]
            ):
                raise
            text = f"{unknown.format_message()} The program's own arguments go behind --, at the end."
            raise click.UsageError(text, ctx) from unknown

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Name the arguments of the script too."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENT...]"]


def check_together(
    files: tuple[str, ...],
    following: Following,
    *,
    script: Path | None,
    module: str | None,
    image: str | None,
    key: str | None,
) -> None:
    """Refuse combinations of options that contradict each other, each with the repair.

    Raises:
        click.UsageError: the message has every fault.
    """
    runs = max(1, len(files))
    faults = [
        text
        for holds, text in (
            (not (files or script or module or image), "Name a request file, or --script train.py."),
            (bool(script and module), "--script and --module both name the program. Leave one out."),
            (key is not None and runs > 1, "--key names one run: submit one file with it."),
            ("" in files, "The name of a FILE is empty."),
            (key == "", "--key must not be empty."),
            (not (key or "").isprintable(), "--key: expected UTF-8 text without control characters."),
            (
                following.shows_logs and runs > 1,
                "--logs follows one run: submit one file with it, or --wait for several.",
            ),
            (files.count("-") > 1, "Standard input, -, can be read once."),
        )
        if holds
    ]
    if faults := [*faults, *following.faults]:
        raise click.UsageError("\n".join(faults))


def image_of(image: str | None, context: Context) -> str | None:
    """The URI of `--image`; a folder gets one with its name, under which `provide_image` provides it.

    Raises:
        Stop: it is a path that is not a folder, a folder without a Dockerfile, or the context is a project in
            the cloud, where an image must be built.
    """
    if image is None or not Path(image).is_dir():
        if image is not None and image.startswith(_PATHS):
            what = f"{image!r} is not a folder" if Path(image).exists() else f"There is no folder {image!r}"
            raise Stop(ExitStatus.USAGE, f"{what}. Name a folder with a Dockerfile, or an image: {_IMAGE}")
        return image
    uri = f"{_repository(image, context)}:latest"
    if not (Path(image) / "Dockerfile").is_file():
        raise Stop(
            ExitStatus.USAGE,
            f"{image} has no Dockerfile. Write one, or run a script: --script {shlex.quote(image)}/train.py",
        )
    if context.state is None:
        raise Stop(
            ExitStatus.USAGE,
            f"A job in the cloud needs a built image. Build and push it, then name it:\n"
            f"  gcloud builds submit --project {context.project} --tag {uri} {shlex.quote(image)}\n"
            f"  trainmaster submit … --image {uri}\n"
            "The trainer's own image is built by: trainmaster image",
        )
    return uri


def provide_image(image: str | None, context: Context) -> None:
    """Provide the folder of `--image` to the local stack, for this run and later ones."""
    if image is not None and context.state is not None and Path(image).is_dir():
        from trainstack.stack.state import provide

        provide(context.state, {_repository(image, context): Path(image).resolve()})


def _repository(image: str, context: Context) -> str:
    name = model_name_from(Path(image).resolve().name)
    return f"{context.region}-docker.pkg.dev/{context.project}/{context.prefix}trainmaster/{name}"
