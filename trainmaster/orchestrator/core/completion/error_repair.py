"""Repairs of a program that lacks a module or a launcher, or gives a gs:// path to a function for plain files."""

import re

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,80})'.*")
PACKAGES = {
    "PIL": "pillow",
    "absl": "absl-py",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "grpc": "grpcio",
    "hypertune": "cloudml-hypertune",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorflow_datasets": "tensorflow-datasets",
    "yaml": "pyyaml",
}
"""PyPI packages by the module that they install, where the names differ."""
IMAGE_LACKS = "The image lacks it: "
NOT_INSTALLED = "It is not installed: "
PATH_OF_PLAIN_FILES = (
    "Functions for plain files need the path with /gcs/ in place of gs://, and make no folders"
)
NOT_LAUNCHED = "torch.distributed finds no other process: "
_NO_RANK = re.compile(r".*env:// rendezvous: environment variable \w+ expected, but not set")
_LAUNCHED_IN_IMAGE = "`python -m trainer.launch --framework torch -- torchrun` (docs/how-to/frameworks.md)"
_PLAIN_FILE = re.compile(r"FileNotFoundError: \[Errno 2\] No such file or directory: 'gs:/")
"""`pathlib` makes one slash of two."""


def with_repair(error: str, *, runs_script: bool) -> str:
    """The error; for a missing module or launcher, or a gs:// path that was opened as a plain file, with its repair.

    `runs_script`: packages are added beside a packed script, not in an image's Dockerfile.
    """
    if _PLAIN_FILE.match(error):
        return f"{error}. {PATH_OF_PLAIN_FILES}"
    if _NO_RANK.match(error):
        by = "script.launcher: torchrun, or --launcher torchrun" if runs_script else _LAUNCHED_IN_IMAGE
        return f"{error}. {NOT_LAUNCHED}start it with {by}"
    missing = _MISSING.fullmatch(error)
    if missing is None:
        return error
    package = PACKAGES.get(missing[1].partition(".")[0])
    if runs_script:
        own = "" if package else ", or put the module there if it is your own"
        what = f"`{package}`" if package else "its package"
        return f"{error}. {NOT_INSTALLED}add {what} where the project's packages are listed, else to requirements.txt beside the script{own}"
    repair = "install its package with RUN, or COPY it if it is your own, in the Dockerfile"
    repair = f"add `RUN pip install {package}` to the Dockerfile" if package else repair
    return f"{error}. {IMAGE_LACKS}{repair}"


def states_repair(message: str) -> bool:
    """Whether `with_repair` added one to this message."""
    return any(words in message for words in (IMAGE_LACKS, NOT_INSTALLED, NOT_LAUNCHED, PATH_OF_PLAIN_FILES))


def as_sentence(text: str) -> str:
    """The text with a full stop, unless it ends a sentence already, as Python's `Did you mean: 'y'?` does."""
    text = text.rstrip(".")
    return text if text.endswith(("?", "!")) else f"{text}."
