"""The weights that a model starts from: a public file, the user's file, or random values."""

import hashlib
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread

from trainer.devices.choices import LOCAL_STACK
from trainer.faults import Unusable
from trainer.storage import location_of
from trainer.workload import StartingWeights

ANSWER_WITHIN_S = 4.0
READ_TIMEOUT_S = 60
CACHE = Path("~/.keras/models")  # where tf.keras keeps and looks for the same files
RANDOM = StartingWeights(label="random")


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """Public weights of a workload's model: one file, known by its md5 hash."""

    name: str
    url: str
    md5: str


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
    if choice != "auto" and (pretrained is None or choice != pretrained.name):
        return _own_file(choice, pretrained, environment)
    if pretrained is None:
        return replace(RANDOM, because="this workload has no public weights")
    try:
        return StartingWeights(label=pretrained.name, path=_fetch_pretrained(pretrained))
    except OSError as error:
        because = f"{pretrained.name} is unreachable: {error}"
        # Machines of a person or of the local stack often have no network.
        is_job_of_service = environment.get("AIP_MODEL_DIR") and LOCAL_STACK not in environment
        if choice == "auto" and not is_job_of_service:
            return replace(RANDOM, because=because, is_fallback=True)
        if has_checkpoint():
            return replace(RANDOM, because=f"{because}; the checkpoint's replace them", is_fallback=True)
        raise Unusable(
            f"--weights={choice}: {pretrained.url} is unreachable ({error}). "
            f"Use --weights=PATH with the path of a copy, or --weights=random."
        ) from error


def _own_file(choice: str, pretrained: Pretrained | None, environment: Mapping[str, str]) -> StartingWeights:
    path = location_of(choice, environment).path
    if not path.is_file():
        known = ", ".join(["auto", *([pretrained.name] if pretrained else []), "random"])
        raise Unusable(
            f"--weights={choice}: no such file {str(path)!r}; expected {known}, or the path of a weights file."
        )
    return StartingWeights(label=choice, path=path)


def _fetch_pretrained(pretrained: Pretrained) -> Path:
    """The public file's path on this machine.

    Raises:
        OSError: the server does not answer in time, the connection broke, or the content has the wrong hash.
    """
    path = CACHE.expanduser() / pretrained.url.rpartition("/")[2]
    if path.is_file() and _md5_of(path) == pretrained.md5:
        return path
    if (reason := why_unreachable(pretrained.url)) is not None:
        raise reason
    path.parent.mkdir(parents=True, exist_ok=True)
    # Replicas on one machine may download at the same time: each renames its own file.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
        partial = Path(folder) / path.name
        with (
            partial.open("wb") as file,
            urllib.request.urlopen(pretrained.url, timeout=READ_TIMEOUT_S) as response,  # noqa: S310 - https
        ):
            shutil.copyfileobj(response, file)
        if (md5 := _md5_of(partial)) != pretrained.md5:
            raise OSError(f"its md5 hash is {md5}, expected {pretrained.md5}")
        return partial.replace(path)


def _md5_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def why_unreachable(url: str) -> OSError | None:
    """None if the server of `url` answers anything within ANSWER_WITHIN_S seconds, else why not. Proxies are used.

    Asked in a thread, because name servers that do not answer block longer than any socket timeout;
    a thread that is still waiting is left to end by itself.
    """
    reasons: list[OSError | None] = []

    def send_request() -> None:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - from TFDS or a workload
        try:
            urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S).close()  # noqa: S310 - as above
            reasons.append(None)
        except OSError as error:  # urllib's errors are OSErrors; a refusal is an answer
            reasons.append(None if isinstance(error, urllib.error.HTTPError) else error)

    thread = Thread(target=send_request, daemon=True)
    thread.start()
    thread.join(ANSWER_WITHIN_S + 1)
    return reasons[0] if reasons else TimeoutError(f"no answer within {ANSWER_WITHIN_S:g} s")
