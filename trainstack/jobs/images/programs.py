"""The program of each worker pool's replicas: a container's program, or the module of a Python package.

Source: https://cloud.google.com/vertex-ai/docs/training/code-requirements and …/training/pre-built-containers,
read 2026-11.
"""

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from trainstack.jobs.images.dockerfile import DockerfileImage, ImageError, read_image, repository_of
from trainstack.jobs.images.recipes import Recipe, base_of, recipe_of
from trainstack.jobs.images.scripts import INSTALLED, VARIABLE, Scripts
from trainstack.jobs.resource.machines import Message

ENVIRONMENT_VARIABLE = "TRAINMASTER_REPLICA_ENVIRONMENT"

_INTERPRETER = re.compile(r"(/.*)?/python(3(\.\d+)?)?")
"""By its path in the image, as in `/opt/venv/bin/python`: the environment's own stands for it."""
PACKAGE_RUNNER = Path(__file__).with_name("package_runner.py")


class EnvironmentKind(Enum):
    """Whose variables a replica finds: Vertex AI's, or those of AI Platform Training, which came before it."""

    VERTEX = "vertex"
    AI_PLATFORM = "ai_platform"


@dataclass(frozen=True, kw_only=True)
class PoolContainer:
    """What one pool's replicas run: an image of podman's store, and what replaces its ENTRYPOINT and CMD.

    `image` is a reference that podman resolves without a registry, `is_root` whether the image's user is root.
    """

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    is_root: bool = True


class ProgramError(Exception):
    """A worker pool that cannot be run here as it is; the message is for the user who submitted the job."""


@dataclass(frozen=True, kw_only=True)
class PoolProgram:
    """What one pool's replicas run.

    Attributes:
        argv: the command line; for Python packages, what their runner takes after its interpreter's path.
        env: the pool's own variables, in order, their references not yet resolved.
        container: runs instead of `argv`, which is empty then; None where a process of this machine stands for it.
        recipe: what the environment of a process is made from; None for a container, which has its own.
        python: the interpreter of that environment, once there is one.
        is_package: whether Python packages are installed first.
        is_script: whether a script is run, whose requirements the environment has.
    """

    image: DockerfileImage
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    environment: EnvironmentKind = EnvironmentKind.VERTEX
    container: PoolContainer | None = None
    recipe: Recipe | None = None
    python: Path = Path(sys.executable)
    is_package: bool = False
    is_script: bool = False

    @property
    def command_line(self) -> tuple[str, ...]:
        """All words of the process."""
        if self.is_package:
            return (sys.executable, "-I", str(PACKAGE_RUNNER), str(self.python), *self.argv)
        if self.argv and _INTERPRETER.fullmatch(self.argv[0]):
            return ("python", *self.argv[1:])
        return self.argv

    @property
    def variables(self) -> dict[str, str]:
        """What the base image and the Dockerfile set."""
        of_base = self.recipe.base.variables if self.recipe else {}
        return {**of_base, **self.image.env, **(INSTALLED if self.is_script else {})}


@dataclass(frozen=True, kw_only=True)
class Provided:
    """What images there are.

    Attributes:
        images: gives source trees by repository, as `images.repository_of` has it; asked for each job.
        find: an image in the store of the machine's containers by its URI, None where it is missing; itself None
            where replicas are processes.
        scripts: the archives of scripts that jobs run; None where there are no buckets.
    """

    images: Callable[[], Mapping[str, Path]]
    find: Callable[[str], PoolContainer | None] | None = None
    scripts: Scripts | None = None


def programs_of(spec: Message, *, pools: Iterable[int], provided: Provided) -> dict[int, PoolProgram]:
    """The programs of `pools` of a CustomJobSpec. Reads Dockerfiles, and asks for containers' images.

    An image that several pools name is looked up once, so that all of them run the same one even if its tag moves.

    Raises:
        ProgramError: an image is not provided or cannot be read, or a variable asks for what cannot be;
            every fault, a line each.
    """
    if provided.find is not None:
        provided = replace(provided, find=functools.cache(provided.find))
    programs: dict[int, PoolProgram] = {}
    faults: list[str] = []
    for pool in sorted(set(pools)):
        try:
            programs[pool] = _program(spec.worker_pool_specs[pool], pool, provided)
        except (ProgramError, ImageError) as error:
            faults.append(str(error))
    if faults:
        raise ProgramError("\n".join(dict.fromkeys(faults)))
    return programs


def _program(pool_spec: Message, pool: int, provided: Provided) -> PoolProgram:
    task = getattr(pool_spec, pool_spec.WhichOneof("task"))
    env = tuple((variable.name, variable.value) for variable in task.env)
    made = functools.partial(PoolProgram, env=env, environment=_environment(dict(env), pool))
    # A Python package needs this machine's runner: it is a process in any case.
    if pool_spec.WhichOneof("task") == "python_package_spec":
        image = _image(task.executor_image_uri, provided.images())
        return made(image=image, recipe=recipe_of(image), argv=_package_argv(task), is_package=True)
    if provided.find is not None:
        if (stored_container := provided.find(task.image_uri)) is None:
            raise _not_in_store(task.image_uri)
        container = replace(stored_container, command=tuple(task.command), args=tuple(task.args))
        return made(image=DockerfileImage(tree=Path("/")), argv=(), container=container)
    image = _image(task.image_uri, provided.images())
    is_base = image.tree == Path("/")  # its own program is not here
    argv = image.argv(command=list(task.command), args=list(task.args)) if task.command or not is_base else []
    if not argv:
        raise ProgramError(
            f"Worker pool {pool} has nothing to run: what stands for the image {task.image_uri!r} has no program of "
            "its own, so its containerSpec needs a command."
        )
    archive_uri = dict(env).get(VARIABLE)
    if archive_uri is None or provided.scripts is None:
        return made(image=image, recipe=recipe_of(image), argv=tuple(argv))
    install = provided.scripts.install_of(archive_uri)
    recipe = recipe_of(image, script=[install] if install else [])
    return made(image=image, recipe=recipe, argv=tuple(argv), is_script=True)


def _image(uri: str, images: Mapping[str, Path]) -> DockerfileImage:
    """What a source tree says, else an image that is known as a base."""
    tree = images.get(repository_of(uri))
    if tree is not None:
        return read_image(tree, images)
    if base_of(uri) is not None:
        return DockerfileImage(tree=Path("/"), base=uri)
    raise _not_provided(uri, images)


def _not_provided(uri: str, images: Iterable[str]) -> ProgramError:
    """In the service's own words, and with the way out that only the local stack has."""
    known = ", ".join(sorted(images)) or "none"
    return ProgramError(
        f"{_not_in_store(uri)} Provide it with: trainmaster stack provide {repository_of(uri)}=DIR, "
        f"where DIR has its Dockerfile; provided: {known}."
    )


def _not_in_store(uri: str) -> ProgramError:
    return ProgramError(f"Failed to read the container uri [{uri}]. Please make sure that the image exists.")


def _package_argv(task: Message) -> tuple[str, ...]:
    order = json.dumps({"package_uris": list(task.package_uris), "python_module": task.python_module})
    return (order, *task.args)


def _environment(env: Mapping[str, str], pool: int) -> EnvironmentKind:
    asked = env.get(ENVIRONMENT_VARIABLE, EnvironmentKind.VERTEX.value)
    known = {kind.value: kind for kind in EnvironmentKind}
    if asked not in known:
        raise ProgramError(
            f"Worker pool {pool} sets {ENVIRONMENT_VARIABLE} to {asked!r}; it is one of {', '.join(known)}."
        )
    return known[asked]
