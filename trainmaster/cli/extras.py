"""How to install an extra of the package, from where the package itself came."""

import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trainmaster.resources import ROOT


def install_command(extras: Iterable[str]) -> str:
    """The command: this package is on no index, so its checkout or its wheel is named.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/, read 2026-11.
    """
    wanted = f"[{','.join(extras)}]"
    try:
        text = distribution("trainmaster").read_text("direct_url.json")
    except PackageNotFoundError:  # run from a checkout as it is
        return f"pip install '{ROOT}{wanted}'"
    if text is None:
        return f"pip install 'trainmaster{wanted}'"
    origin = json.loads(text)
    url = urlsplit(origin["url"])
    if url.scheme != "file":
        return f"pip install 'trainmaster{wanted} @ {origin['url']}'"
    editable = "--editable " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{Path(unquote(url.path))}{wanted}'"
