"""How to fix an image that lacks a module that its program imports."""

import re

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,80})'.*")
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "hypertune": "cloudml-hypertune",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorflow_datasets": "tensorflow-datasets",
    "yaml": "pyyaml",
}
"""PyPI packages by the module that they install, where the names differ."""


def with_repair(error: str) -> str:
    """The error; for a missing module, with the line to add to the image's Dockerfile."""
    missing = _MISSING.fullmatch(error)
    if missing is None:
        return error
    package = _PACKAGES.get(missing[1].partition(".")[0])
    if package:
        repair = f"add `RUN pip install {package}` to the Dockerfile"
    else:
        repair = "install its package with RUN, or COPY it if it is your own, in the Dockerfile"
    return f"{error}. The image lacks it: {repair}"
