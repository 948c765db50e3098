"""The requests and the rule that the page Try a request offers to start from."""

from collections.abc import Mapping
from functools import cache
from pathlib import PurePath

from trainmaster.resources import EDITOR_LINE, ROOT

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "hello": ("examples/hello.yaml", "A first training, without data"),
    "small": ("examples/small.yaml", "A training on pictures"),
    "distributed": ("examples/cassava.yaml", "Several workers with GPUs"),
    "tuning": ("examples/tuning.yaml", "A tuning with six trials"),
    "roles": ("examples/roles.yaml", "Parameter servers and an evaluator"),
    "vertex": ("examples/vertex/custom-job.yaml", "gcloud's form of a custom job"),
    "ai-platform": ("examples/ai_platform/config.yaml", "AI Platform's form"),
    "rule": ("examples/rules/new-data.yaml", "A retraining rule, to check"),
}
"""By the name in the address: the file, and what it is."""
EXAMPLES_PROJECT = "my-project"
PREPARATION: Mapping[str, str] = {
    "small": "This training reads the data set horses_or_humans from gs://PROJECT-data/tfds, and needs TensorFlow."
    " For a local stack, docs/reference/local-stack.md, “Submit a request”, says how to prepare both.",
}
"""What an example needs before it can succeed, by its name."""


def example(name: str, project: str) -> tuple[str, str, str]:
    """The text of an example for a project, the name of its file, and what it needs before it can succeed, or empty."""
    text = _text(name).replace(EXAMPLES_PROJECT, project)
    return text, PurePath(EXAMPLES[name][0]).name, PREPARATION.get(name, "").replace("PROJECT", project)


@cache
def _text(name: str) -> str:
    """The example without the line that names its schema to editors."""
    text = (ROOT / EXAMPLES[name][0]).read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    return rest if first.startswith(EDITOR_LINE) else text
