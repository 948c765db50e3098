"""The page of scores, docs/reference/clients.md, and the table that the runner prints, from the runner's JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.suites.outcomes import KINDS, Score
from tests.suites.suite import SUITES, Suite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "clients.md"
SCORES = Path(__file__).with_name("scores.json")
NAMES_MAX = 3

HEAD = """# Clients judge the stack

The system tests and samples of these clients, written by others, run against the local stack.
*Refused* tests ask for what the stack does not imitate, and get its sentence at once; *wrong* ones fail otherwise.
`python -m tests.suites --page` writes this page from `tests/suites/scores.json`.
"""
TAIL = """

## Run them

In an empty folder, then in this repository:

```text
{clones}python -m tests.suites --checkouts FOLDER --save
```
"""


def read_scores(path: Path) -> list[Score]:
    """The scores of a file, in the order of SUITES; none without the file."""
    documents = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    order = [suite.name for suite in SUITES]
    return sorted((Score(**document) for document in documents), key=lambda score: order.index(score.suite))


def keep_score(score: Score, path: Path) -> None:
    """Write a score into the file, in place of the suite's last one."""
    scores = [other for other in read_scores(path) if other.suite != score.suite]
    documents = [asdict(kept) for kept in (*scores, score)]
    path.write_text(json.dumps(documents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table_text(scores: Sequence[Score]) -> str:
    """One line for each suite: the client, its version, the date, and how many tests are of each kind."""
    lines = [
        "| suite | version | date | passed | refused | wrong | skipped |",
        "|---|---|---|---|---|---|---|",
    ]
    for score in scores:
        counts = " | ".join(str(score.counts[kind]) for kind in KINDS)
        lines.append(f"| {score.suite} | {score.version} | {score.date} | {counts} |")
    return "\n".join(lines)


def page_text(scores: Sequence[Score]) -> str:
    """The whole page."""
    suites = {suite.name: suite for suite in SUITES}
    sections = "".join(_section(score, suites[score.suite]) for score in scores)
    clones = dict.fromkeys(
        f"git clone https://github.com/{suite.repository}\ngit -C {suite.checkout} checkout {suite.commit}\n"
        for suite in SUITES
    )
    return f"{HEAD}\n{table_text(scores)}\n{sections}{TAIL.format(clones=''.join(clones))}"


def _section(score: Score, suite: Suite) -> str:
    tests = ", ".join(f"`{suite.checkout}/{path}`" for path in suite.tests.split())
    lines = [
        f"\n## {suite.name}\n",
        f"{tests} of <https://github.com/{suite.repository}>.\n",
    ]
    lines.extend(f"- Adaptation: {adaptation.why}." for adaptation in suite.adaptations)
    for kind, causes in score.causes.items():
        if causes:
            lines += [f"\n| {kind} | cause | tests |", "|---|---|---|"]
            lines.extend(
                f"| {len(tests)} | {_cell(cause)} | {_names(tests)} |" for cause, tests in causes.items()
            )
    return "\n".join(lines) + "\n"


def _names(tests: Sequence[str]) -> str:
    """The names of the first tests, and how many others there are."""
    others = f" and {len(tests) - NAMES_MAX} more" if len(tests) > NAMES_MAX else ""
    return ", ".join(_cell(test.rpartition("::")[2]) for test in tests[:NAMES_MAX]) + others


def _cell(text: str) -> str:
    """A text as code: it may have any of Markdown's signs."""
    return f"`{text.replace('`', chr(39)).replace('|', '/')}`"
