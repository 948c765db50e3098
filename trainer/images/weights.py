"""The weights that a model starts from: a public file, the user's file, or random values."""

import hashlib
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trainer.devices.accelerators import LOCAL_STACK
from trainer.faults import Unusable
from trainer.images.network import why_unreachable
from trainer.storage import located
from trainer.workload import StartingWeights

READ_TIMEOUT_S = 60
CACHE = Path("~/.keras/models")  # where tf.keras keeps and looks for the same files


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """Public weights of a workload's model: one file, known by its md5 hash."""

    name: str
    url: str
    md5: str


RANDOM = StartingWeights(label="random")


def starting_weights(
    choice: str,
    pretrained: Pretrained | None,
    environment: Mapping[str, str],
    has_checkpoint: Callable[[], bool] = lambda: False,
) -> StartingWeights:
    """The weights for `--weights=choice`; a public file is downloaded once and kept.

    Whether the server answers is known within seconds. If it does not, `auto` is random, except in a job of the
    service, which would cost what it costs with the weights and end with a worse model. `has_checkpoint` is called
    then: a run that continues needs no starting weights.

    Raises:
        Unusable: the file does not exist, or public weights cannot be downloaded that `choice` names, or that a job of
            the service would start from.
    """
    if choice == "random":
        return RANDOM
    names = {pretrained.name} if pretrained else set()
    if choice != "auto" and choice not in names:
        return _own_file(choice, names, environment)
    if pretrained is None:
        return replace(RANDOM, because="this workload has no public weights")
    try:
        return StartingWeights(label=pretrained.name, path=_fetched(pretrained))
    except OSError as error:
        if choice == "auto" and not _is_job_of_service(environment):
            return replace(RANDOM, because=f"{pretrained.name} is unreachable: {error}", is_fallback=True)
        if has_checkpoint():
            because = f"{pretrained.name} is unreachable: {error}; the checkpoint's replace them"
            return replace(RANDOM, because=because, is_fallback=True)
        raise Unusable(
            f"--weights={choice}: {pretrained.url} is unreachable ({error}). "
            f"Use --weights=PATH with the path of a copy, or --weights=random."
        ) from error


def _is_job_of_service(environment: Mapping[str, str]) -> bool:
    """Whether the service runs this replica, not a person or the local stack, which often has no network."""
    return bool(environment.get("AIP_MODEL_DIR")) and LOCAL_STACK not in environment


def _own_file(choice: str, names: set[str], environment: Mapping[str, str]) -> StartingWeights:
    path = located(choice, environment).path
    if not path.is_file():
        known = ", ".join(sorted({"auto", "random", *names}))
        raise Unusable(
            f"--weights={choice}: no such file {str(path)!r}; expected {known}, or the path of a weights file."
        )
    return StartingWeights(label=choice, path=path)


def _fetched(pretrained: Pretrained) -> Path:
    """The public file's path on this machine.

    Raises:
        OSError: the server does not answer in time, the connection broke, or the content has the wrong hash.
    """
    path = CACHE.expanduser() / pretrained.url.rpartition("/")[2]
    if path.is_file() and _md5(path) == pretrained.md5:
        return path
    if (reason := why_unreachable(pretrained.url)) is not None:
        raise reason
    path.parent.mkdir(parents=True, exist_ok=True)
    # Replicas on one machine may download at the same time: each writes a temporary file and renames it.
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with (
            os.fdopen(handle, "wb") as file,
            urllib.request.urlopen(pretrained.url, timeout=READ_TIMEOUT_S) as response,  # noqa: S310 - https
        ):
            shutil.copyfileobj(response, file)
        if (found := _md5(Path(partial))) != pretrained.md5:
            raise OSError(f"its md5 hash is {found}, expected {pretrained.md5}")
        Path(partial).replace(path)
    finally:
        Path(partial).unlink(missing_ok=True)
    return path


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
