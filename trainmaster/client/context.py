"""The place where the command works: the local stack of a folder, or a project and region of Google Cloud.

The order of choice: an explicit name, the environment variable, the kept choice, a running stack.

A verb that changes something uses another folder's stack only if that stack was chosen: a script cannot
answer a question, and when a warning appears the run has already started.
"""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.orchestrator.core.deployment_names import DEPLOYMENT_FORM, is_deployment_name, name_prefix
from trainstack.find import (
    DEFAULT_STATE,
    PROJECT,
    NoStack,
    between_text,
    environment_on,
    folder_of,
    is_between,
    is_of,
    is_state,
    plain_path,
    read_stack_env,
    running_stacks,
    stack_between,
    start_command,
    stopped_stack,
)

VARIABLE = "TRAINMASTER_CONTEXT"
TEAM_VARIABLE = "TRAINMASTER_TEAM"
LOCAL = "local"
FORMS = f"{LOCAL}[/NAME], {LOCAL}[/NAME]:DIR or PROJECT/REGION[/NAME]"
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_HINT = "For a deployed project: trainmaster context use PROJECT/REGION."


class NoContext(Exception):
    """There is nothing to work with; the message says how to start a stack or choose a project."""

    def __init__(self, message: str, state: Path | None = None) -> None:
        super().__init__(message)
        self.state = state
        """The folder of the chosen stack, which does not answer; None if another reason."""


class UnknownContext(Exception):
    """The text names no context; the message shows the forms that do."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """One local stack, or one deployment. `*_host` is a local service's address, None for Google Cloud's."""

    project: str
    region: str
    inbox_bucket: str
    ledger_bucket: str
    models_bucket: str
    champions_bucket: str
    data_bucket: str
    deployment: str = ""
    """The deployment's name; empty for the one without a name."""
    storage_host: str | None = None
    vertex_host: str | None = None
    logging_host: str | None = None
    monitoring_host: str | None = None
    pubsub_host: str | None = None
    state: Path | None = None
    """The folder of the local stack; None for Google Cloud."""
    team: str | None = None
    """Whose folders the command uses in a deployment with teams; None: those of its only team."""
    chosen_by: str = ""
    """What chose it, in words that follow the title: `chosen by --context`."""
    is_elsewhere: bool = False
    """Nothing chose it: it is another folder's stack, and the only one that runs."""

    @property
    def name(self) -> str:
        """The text that chooses this context, in one of FORMS."""
        place, folder = (
            (f"{self.project}/{self.region}", "") if self.state is None else (LOCAL, f":{self.state}")
        )
        return f"{place}{self.deployment and f'/{self.deployment}'}{folder}"

    @property
    def title(self) -> str:
        """In words, for people."""
        named = f"deployment {self.deployment} in " if self.deployment else ""
        if self.state is None:
            return f"{named}project {self.project}, region {self.region}"
        return f"{named}the local stack on {self.state}"

    @property
    def prefix(self) -> str:
        """What the names of the deployment's resources have before their own."""
        return name_prefix(self.deployment)


def context_of_stack(environment: Mapping[str, str], state: Path | None = None) -> Context:
    """The stack with these variables, which `stack.env` exports.

    Raises:
        KeyError: one of the variables is missing.
    """
    return Context(
        project=environment["GOOGLE_CLOUD_PROJECT"],
        region=environment["TRAINMASTER_REGION"],
        inbox_bucket=environment["TRAINMASTER_INBOX_BUCKET"],
        ledger_bucket=environment["TRAINMASTER_LEDGER_BUCKET"],
        models_bucket=environment["TRAINMASTER_MODELS_BUCKET"],
        champions_bucket=environment["TRAINMASTER_CHAMPIONS_BUCKET"],
        data_bucket=environment["TRAINMASTER_DATA_BUCKET"],
        storage_host=environment.get("STORAGE_EMULATOR_HOST"),
        vertex_host=environment.get("VERTEX_EMULATOR_HOST"),
        logging_host=environment.get("LOGGING_EMULATOR_HOST"),
        monitoring_host=environment.get("MONITORING_EMULATOR_HOST"),
        pubsub_host=environment.get("PUBSUB_EMULATOR_HOST"),
        state=state,
    )


def context_in_cloud(project: str, region: str, deployment: str = "") -> Context:
    """The deployment of this name in the project. Its buckets are named as in trainmaster/deploy/topology.yaml."""
    before = f"{project}-{name_prefix(deployment)}"
    return Context(
        project=project,
        region=region,
        deployment=deployment,
        inbox_bucket=f"{before}inbox",
        ledger_bucket=f"{before}ledger",
        models_bucket=f"{before}models",
        champions_bucket=f"{before}champions",
        data_bucket=f"{before}data",
    )


def context_of_state(state: Path) -> Context | None:
    """The names of the stack that runs or last ran on the folder, without a service; None if none has run there."""
    try:
        return context_of_stack(read_stack_env((state / "stack.env").read_text(encoding="utf-8")), state)
    except (OSError, ValueError, KeyError):  # it does not run
        pass
    try:
        names = json.loads((state / PROJECT).read_text(encoding="utf-8"))
        return context_in_cloud(str(names["project"]), str(names["region"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def settings_folder() -> Path:
    """This user's folder of settings: the kept context, and the list of running stacks.

    The variable TRAINMASTER_CONFIG names another.
    """
    from click import get_app_dir

    chosen = os.environ.get("TRAINMASTER_CONFIG")
    return Path(chosen).absolute() if chosen else Path(get_app_dir("trainmaster"))


def choose_context(
    name: str | None,
    environment: Mapping[str, str],
    *,
    directory: Path,
    settings: Path,
    named_by: str = "--context",
) -> Context:
    """The context that `name`, the variable TRAINMASTER_CONTEXT, the kept choice or a running stack chooses.

    Its team is the one in the variable TRAINMASTER_TEAM.

    Args:
        name: an explicit choice, in one of FORMS.
        environment: this process's variables.
        directory: where stacks are searched for first, and what a relative DIR is relative to.
        settings: this user's folder of settings, which holds the kept choice and the list of stacks.
        named_by: the option or command that takes `name`.

    Raises:
        NoContext: nothing was chosen, and no stack runs, several do, or only stacks of other folders while this
            folder's is stopped; or the chosen stack does not answer.
        UnknownContext: the text that chooses has another form.
    """
    chosen = _choose_among_all(name, environment, directory, settings, named_by)
    return replace(chosen, team=environment.get(TEAM_VARIABLE) or None)


def _choose_among_all(
    name: str | None, environment: Mapping[str, str], directory: Path, settings: Path, named_by: str
) -> Context:
    for text, chosen_by in (
        (name, f"chosen by {named_by}"),
        (environment.get(VARIABLE), f"chosen by {VARIABLE}"),
        (kept_choice(settings), "chosen by trainmaster context use"),
    ):
        if text:
            return _context_named(text, chosen_by, directory, settings)
    state = _only_stack(directory, settings)
    only = replace(_context_on(state), chosen_by="the only local stack that is running")
    if not is_of(state, directory):
        return replace(only, is_elsewhere=True)
    is_here = folder_of(state).resolve() == directory.resolve()
    return replace(only, chosen_by="the stack of this folder" if is_here else "the stack of a parent folder")


def refuse_elsewhere(context: Context) -> None:
    """Refuse to change a stack that nothing but its being the only one has chosen.

    Raises:
        NoContext: the context is such a stack; the message says how to use it, and how to start another.
    """
    if context.is_elsewhere and context.state is not None:
        raise NoContext(
            f"No stack of this folder is running, and the one of {str(folder_of(context.state))!r} is not changed from here.\n"
            f"Use that stack: --context {LOCAL}:{shlex.quote(str(context.state))}\n"
            f"Start one here: {start_command(DEFAULT_STATE)}"
        )


def _context_named(text: str, chosen_by: str, directory: Path, settings: Path) -> Context:
    place, colon, folder = text.partition(":")
    kind, slash, deployment = place.partition("/")
    if kind == LOCAL and bool(colon) == bool(folder):
        _refuse(text, chosen_by, _name_faults(slash, deployment))
        try:
            state = _state_of(plain_path(directory / Path(folder).expanduser())) if folder else None
        except (OSError, ValueError, RuntimeError) as fault:  # RuntimeError: ~USER of no user
            raise UnknownContext(f"There is no context {text!r}, {chosen_by}. {fault}") from fault
        if state is None:
            state = _only_stack(directory, settings)
        return replace(_context_on(state, deployment), chosen_by=chosen_by)
    project, _, rest = text.partition("/")
    region, slash, deployment = rest.partition("/")
    wrong = []
    if not _PROJECT.fullmatch(project):
        wrong.append(
            f"{project!r} is not a project id, which has 6 to 30 lower-case letters, digits and hyphens, begins with a "
            "letter and does not end with a hyphen."
        )
    if not _REGION.fullmatch(region):
        wrong.append(f"{region!r} is not a region, such as us-central1.")
    wrong += _name_faults(slash, deployment)
    _refuse(text, chosen_by, wrong if project and region else [f"Expected {FORMS}."])
    return replace(context_in_cloud(project, region, deployment), chosen_by=chosen_by)


def _name_faults(slash: str, deployment: str) -> list[str]:
    if not slash or is_deployment_name(deployment):
        return []
    return [f"{deployment!r} is not the name of a deployment: expected {DEPLOYMENT_FORM}."]


def _refuse(text: str, chosen_by: str, wrong: Sequence[str]) -> None:
    if wrong:
        raise UnknownContext(" ".join([f"There is no context {text!r}, {chosen_by}.", *wrong]))


def refuse_names(names: Sequence[str], environment: Mapping[str, str], state: Path) -> None:
    """Raises NoContext: the stack with these variables, on `state`, does not run the deployments of all these names."""
    running = environment.get("TRAINMASTER_DEPLOYMENTS", "").split()
    if missing := [name for name in names if name not in running]:
        options = "".join(f" --name {name}" for name in (*running, *missing))
        raise NoContext(
            f"The stack on {str(state)!r} does not run the deployment {', '.join(missing)}. "
            f"Stop it, and start it with every name: {start_command(state)}{options}"
        )


def _state_of(folder: Path) -> Path:
    """The folder itself if it is a state folder, or might become one; of any other folder, its own `.trainmaster`."""
    if folder.name == DEFAULT_STATE.name or is_state(folder):
        return folder
    holds_files = folder.is_dir() and any(folder.iterdir())
    return folder / DEFAULT_STATE if holds_files else folder


def _running(directory: Path, settings: Path) -> list[Path]:
    """As `running_stacks`, but never another folder's stack in place of this folder's, which is stopped."""
    stacks = running_stacks(directory, settings)
    stopped = stopped_stack(directory)
    if stopped is None or (not stacks and stopped.parent == directory):
        return stacks
    if is_between(stopped):
        raise NoContext(between_text(stopped), stopped)
    start = start_command(DEFAULT_STATE if stopped.parent == directory else stopped)
    others = "".join(f"\n  --context {LOCAL}:{stack}" for stack in stacks)
    more = f"To use another:{others}" if stacks else _HINT
    raise NoContext(
        f"The stack of this folder, {str(stopped)!r}, is not running. Start it: {start}\n{more}", stopped
    )


def _only_stack(directory: Path, settings: Path) -> Path:
    match stacks := _running(directory, settings):
        case []:
            between = stack_between(directory)
            none = f"No local stack is running. Start one: trainmaster up --detach\n{_HINT}"
            raise NoContext(none if between is None else between_text(between))
        case [only]:
            return only
        case _:
            names = "\n".join(f"  --context {LOCAL}:{stack}" for stack in stacks)
            raise NoContext(f"{len(stacks)} local stacks are running. Choose one:\n{names}")


def _context_on(state: Path, deployment: str = "") -> Context:
    try:
        environment = environment_on(state)
        context = context_of_stack(environment, state)
    except NoStack as fault:
        raise NoContext(f"{fault}\n{_HINT}", state) from fault
    except KeyError as fault:
        raise NoContext(
            f"{state / 'stack.env'} lacks {fault}: another version wrote it. Stop that stack and start it again."
        ) from fault
    if not deployment:
        return context
    refuse_names([deployment], environment, state)
    other = context_in_cloud(context.project, context.region, deployment)
    services = {name: value for name, value in vars(context).items() if name.endswith("_host")}
    return replace(other, **services, state=state)


def kept_choice(settings: Path) -> str | None:
    """What `trainmaster context use` kept, or None."""
    try:
        with (settings / "context").open(encoding="utf-8") as file:
            return file.read(4096).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def keep_choice(name: str | None, settings: Path) -> None:
    """Keep the choice for later commands; None forgets it.

    Raises:
        OSError: the folder cannot be written.
    """
    if name is None:
        (settings / "context").unlink(missing_ok=True)
        return
    settings.mkdir(parents=True, exist_ok=True)
    unfinished = settings / f"context.{os.getpid()}"
    unfinished.write_text(f"{name}\n", encoding="utf-8")
    unfinished.replace(settings / "context")
