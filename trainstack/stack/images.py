"""The source trees that provide images, kept in the state folder for the running stack and later ones."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

from trainstack.stack.errors import StateError
from trainstack.stack.state import write_whole

MAX_IMAGES = 1000

_FILE = "images.json"


def current_images(state: Path, given: Mapping[str, Path]) -> dict[str, Path]:
    """The source trees by image URI: those that are provided now, and of the `given` ones all others."""
    return {**given, **provided_trees(state)}


def provided_trees(state: Path) -> dict[str, Path]:
    """Source trees by image URI, as `provide` stored them in a state folder.

    Raises:
        StateError: the file is damaged.
    """
    path = state / _FILE
    try:
        trees = json.loads(path.read_text(encoding="utf-8"))
        return {str(uri): Path(tree) for uri, tree in trees.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise StateError(
            f"{path} cannot be read: {error}. Remove it and provide the images again."
        ) from error


def provide(state: Path, images: Mapping[str, Path]) -> None:
    """Provide images from these source trees, starting with the next job.

    Safe to call from several processes at once.

    Raises:
        StateError: the state folder is not writable, or would have more than MAX_IMAGES.
    """
    if not images:
        return
    try:
        state.mkdir(parents=True, exist_ok=True)
        lock = os.open(state / f"{_FILE}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StateError(f"Cannot write to the state folder {str(state)!r}: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        trees = provided_trees(state) | {uri: tree.resolve() for uri, tree in images.items()}
        if len(trees) > MAX_IMAGES:
            raise StateError(
                f"{state / _FILE} would have more than {MAX_IMAGES} images; remove some by hand."
            )
        write_whole(state / _FILE, json.dumps({uri: str(tree) for uri, tree in trees.items()}, indent=1))
    finally:
        os.close(lock)
