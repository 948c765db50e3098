"""A study as one HTML page that needs nothing but itself: no script, no font, no network."""

from datetime import datetime
from html import escape
from pathlib import Path

from trainmaster.cli.study.board import seconds
from trainmaster.cli.study.figure import png_of, summary, svg_of
from trainmaster.client.study.study import Study, Trial, shown
from trainmaster.client.terminal import one_line

# Nothing may be loaded and no script may run, whatever a parameter is called.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_STYLE = """
:root { color-scheme: light dark; --line: #d0d5db; --faint: #5b6470; --best: #fdeee2; }
@media (prefers-color-scheme: dark) { :root { --line: #3a424c; --faint: #a5afba; --best: #4a2a12; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p, dd { overflow-wrap: anywhere; }
.faint { color: var(--faint); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; margin: 1rem 0; }
dt { color: var(--faint); } dd { margin: 0; }
figure { background: #fff; border-radius: .5rem; margin: 1.5rem 0; padding: .5rem; overflow-x: auto; }
figure svg { display: block; width: 100%; height: auto; min-width: 44rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .75rem; text-align: right; vertical-align: top; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2), td:last-child { text-align: left; }
tr.best { background: var(--best); font-weight: 600; }
td { max-width: 22rem; overflow-wrap: anywhere; }
"""


def write_study(study: Study, directory: Path, *, model_uri: str | None, at: datetime) -> tuple[Path, Path]:
    """`study.html` and `study.png` in `directory`, which is made; older ones are replaced."""
    directory.mkdir(parents=True, exist_ok=True)
    html, png = directory / "study.html", directory / "study.png"
    html.write_text(page_of(study, model_uri=model_uri, at=at), encoding="utf-8")
    png.write_bytes(png_of(study))
    return html, png


def page_of(study: Study, *, model_uri: str | None, at: datetime) -> str:
    """The page: what was best and where its model is, the figure, and every trial. `at` is when it was read."""
    title = _text(study.title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p>{_text(summary(study))}</p>
<dl>{_best(study, model_uri)}<dt>Job</dt><dd>{_text(study.name)}</dd></dl>
<figure role="img" aria-label="{_text(_description(study))}">
{svg_of(study)}</figure>
<h2>Every trial</h2>
<div class="table"><table>
<thead><tr>{_headings(study)}</tr></thead>
<tbody>
{"".join(_row(study, trial, at) for trial in study.trials)}</tbody>
</table></div>
<p class="faint">State of the job at {at:%Y-%m-%d %H:%M:%S %Z}.</p>
</body>
</html>
"""


def _best(study: Study, model_uri: str | None) -> str:
    best = study.best
    if best is None:
        return ""
    items = [(name, shown(value)) for name, value in best.parameters.items()]
    items += [("Model", model_uri)] if model_uri else []
    return "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in items)


def _description(study: Study) -> str:
    return (
        "Learning curves of all trials, and their parameters and results on parallel axes. "
        f"{summary(study)} The table below holds the same numbers."
    )


def _headings(study: Study) -> str:
    names = [parameter.name for parameter in study.parameters]
    result = f"{study.metric} ({study.goal})"
    headings = ["trial", "state", *names, result, "best measured", "measurements", "elapsed", "reason"]
    return "".join(f'<th scope="col">{_text(heading)}</th>' for heading in headings)


def _row(study: Study, trial: Trial, at: datetime) -> str:
    cells = [
        trial.id,
        trial.state.value,
        *(shown(trial.parameters.get(parameter.name)) for parameter in study.parameters),
        shown(trial.final),
        shown(study.best_measured(trial)),
        str(len(trial.measurements)),
        seconds(trial.elapsed(at)),
        trial.infeasible_reason,
    ]
    kind = ' class="best"' if trial is study.best else ""
    return f"<tr{kind}>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>\n"


def _text(text: str) -> str:
    return escape(one_line(text))
