"""A study as one HTML file, drawn by the same templates and scripts as its page. It opens without a network.

Console and file use the same templates, scripts and data, so there is one way to draw. ECharts draws on a canvas,
evaluates no text as code and needs no build step.
"""

import base64
import hashlib
import shlex
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from trainmaster.client.study.document import study_csv
from trainmaster.client.study.read import TuningStudy
from trainmaster.version import VERSION
from trainmaster.web.rendering import environment
from trainmaster.web.study.view import study_values

_STATIC = Path(__file__).parents[1] / "static"
_SCRIPTS = ("vendor/echarts.min.js", "app.js", "charts.js", "study.js")


def study_file(tuning: TuningStudy, *, at: datetime) -> str:
    """The document. Nothing in it is loaded, and only the console's own scripts run. `at` is when it was read."""
    scripts, style = [_static(name) for name in _SCRIPTS], _static("app.css")
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        "img-src data: blob:; form-action 'none'; base-uri 'none'"
    )
    csv = base64.b64encode(study_csv(tuning.study).encode()).decode()
    values = {
        "view": study_values(tuning, sort="trial", descending=False, most=len(tuning.study.trials)),
        "train": _train(tuning),
        "csv": f"data:text/csv;charset=utf-8;base64,{csv}",
        "at": at,
        "policy": policy,
        "style": style,
        "scripts": scripts,
        "version": VERSION,
    }
    return environment().get_template("study_file.html").render(values)


def _static(name: str) -> Markup:
    return Markup((_STATIC / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of this package, not data


def _train(tuning: TuningStudy) -> str:
    if tuning.run is None:
        return ""
    return f"trainmaster study {shlex.quote(tuning.run.record.run_id)} --request | trainmaster submit -"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
