"""Writes the answers of `trainmaster check` into docs/reference/faults.md: `python -m tests.repo.faults`."""

import re
import tempfile
from pathlib import Path

from tests.command import trainmaster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "faults.md"
EXAMPLE = re.compile(r"```yaml faulty\n(?P<document>.*?)```\n\n```\n(?P<answer>.*?)```\n", re.DOTALL)


def page(text: str) -> str:
    """The page with the answer below each example written again."""
    return EXAMPLE.sub(
        lambda example: (
            f"```yaml faulty\n{example['document']}```\n\n```\n{answer(example['document'])}```\n"
        ),
        text,
    )


def answer(document: str) -> str:
    """The faults of a document, as the command prints them for the shipped policy."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "request.yaml").write_text(document)
        words = ("check", "--context", "my-project/us-central1", "request.yaml")
        done = trainmaster(*words, cwd=Path(folder), environment={"HOME": folder})
    faults, end, _ = done.out.partition("\nrequest.yaml: ")
    if done.status != 1 or not end:
        raise ValueError(f"expected a fault in this document: {document}\n{done.out}{done.err}")
    return f"{faults}\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
