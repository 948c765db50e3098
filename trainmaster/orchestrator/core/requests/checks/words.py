"""What a sound request says and probably does not mean: goals, templates and references that reach the job as they are.

Only warnings: a metric may have an odd name, and the program may fill in its own templates.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.values import Path, list_at, mapping_at
from trainmaster.orchestrator.core.requests.checks.metrics import usual_goal
from trainmaster.orchestrator.core.requests.draft import Draft, Running
from trainmaster.orchestrator.core.requests.spec import Goal

MAX_WARNED = 20
"""Of one request: the first ones say enough, and its record keeps them all."""
_TEMPLATE = re.compile(
    r"\{\{[^{}\n]{1,200}\}\}|\{%[^%\n]{1,200}%\}|\$\{[A-Z_][A-Z0-9_]*\}|(?<!\$)\$(?:[A-Za-z_]\w*|\{(?!run_id\}|trial\})\w+\})"
    r"|%[A-Z_][A-Z0-9_]{2,}%|<(?i:your|my|insert|enter)[ _-][^<>\n]{1,80}>|<[A-Z]+[_-][A-Z0-9_-]+>"
    r"|\bYOUR[_-][A-Z0-9_-]+|\byour-(?:bucket|data|dataset|image|project|region|repository)\b[\w-]*"
)
"""Of shells, Jinja and Go, of Windows, and of people's examples. `$$` is how the service writes one `$`."""
_SHELL = re.compile(r"(?:.*/)?(?:a|ba|da|k|z)?sh")
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_REFERENCE = re.compile(r"(?<!\$)\$\(([A-Za-z_]\w*)\)")
_OF_SERVICE = re.compile(r"(AIP|CLOUD_ML|TRAINMASTER)_\w+|TF_CONFIG|CLUSTER_SPEC")


def word_warnings(draft: Draft) -> Iterator[Fault]:
    """The first of the doubts about the metrics' goals and about what each role's program is given."""
    yield from _goals(draft)
    found = (fault for role in draft.roles for fault in _of_program(draft.running[role]))
    yield from dict.fromkeys(islice(found, MAX_WARNED))


def _goals(draft: Draft) -> Iterator[Fault]:
    metrics = enumerate(map(mapping_at, list_at(draft.tuning, "metrics")))
    tuned = ((("tuning", "metrics", number, "goal"), metric, "id") for number, metric in metrics)
    for at, metric, key in ((("champion", "goal"), mapping_at(draft.document, "champion"), "metric"), *tuned):
        name, goal = metric.get(key), metric.get("goal")
        usual = usual_goal(name) if isinstance(name, str) else None
        if usual not in (None, goal):
            better = "higher" if usual is Goal.MAXIMIZE else "lower"
            problem = f"{name} is usually better when it is {better}, so the worst value would win"
            repair = f"write goal: {usual}, unless the name means something else here"
            yield Fault(at=at, problem=problem, value=goal, repair=repair)


def _of_program(runs: Running) -> Iterator[Fault]:
    words = [((*(runs.command_at or ()), index), word) for index, word in enumerate(list_at(runs.command))]
    words += [((*runs.args_at, index), word) for index, word in enumerate(runs.args)]
    env = list(runs.env.values())
    first = [str(word) for _, word in words[:6]]
    if not (any(map(_SHELL.fullmatch, first[:2])) and any(map(_SHELL_TEXT.fullmatch, first))):
        yield from _templates([*words, *env])
        for at, word in words:
            yield from _references(at, word, runs.env, "the role has no variable of this name")
    for number, (at, value) in enumerate(env):
        yield from _references(at, value, [*runs.env][:number], "no variable of this name comes before it")
        # https://github.com/PrefectHQ/prefect/issues/5940, https://github.com/kubeflow/pipelines/issues/10111
        if not value or "'" in str(value):
            problem = (
                f"Vertex AI is reported to refuse {'an apostrophe in a' if value else 'an empty'} variable"
            )
            yield Fault(at=at, problem=problem, value=value, repair="write another value, or leave it out")


def _templates(texts: Iterable[tuple[Path, object]]) -> Iterator[Fault]:
    for at, text in texts:
        if template := _TEMPLATE.search(str(text)):
            problem = f"{template[0]} looks like a template that was not filled in"
            yield Fault(
                at=at, problem=problem, value=text, repair="write its value, if nothing else fills it in"
            )


def _references(at: Path, text: object, known: Collection[str], why: str) -> Iterator[Fault]:
    """References to variables that the service leaves as they are, because it does not know them there."""
    for reference in _REFERENCE.finditer(str(text)):
        if reference[1] not in known and not _OF_SERVICE.fullmatch(reference[1]):
            repair = f"set {reference[1]} before it, or write the value out"
            yield Fault(at=at, problem=f"{reference[0]} stays this text: {why}", value=text, repair=repair)
