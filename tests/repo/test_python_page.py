"""The page of the Python interface has the signature of every public name, and no other; its example is the notebook's."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import trainmaster

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/reference/python.md").read_text()
SOURCE = (ROOT / "trainmaster/client/connection.py").read_text()
NOTEBOOK = ROOT / "examples/notebook/first_champion.ipynb"
CLASSES = ("Connection", "RunHandle", "ModelHandle", "ChampionHandle")


def signatures(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Of every public name, the words of types without quotes; a property reads like an attribute."""
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name in CLASSES:
            yield from signatures(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            is_value = "property" in map(ast.unparse, node.decorator_list)
            returns = ast.unparse(node.returns) if node.returns else ""
            node.body = [ast.Expr(ast.Constant(...))]
            yield f"{prefix}{node.name}: {returns if is_value else ast.unparse(node)}".replace("'", "")
        elif prefix and isinstance(node, ast.AnnAssign) and not ast.unparse(node).startswith("_"):
            yield f"{prefix}{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_the_page_has_the_signature_of_every_public_name_and_no_other() -> None:
    shown = [line for block in blocks() for line in signatures(ast.parse(block).body)]
    assert sorted(shown) == sorted(signatures(ast.parse(SOURCE).body))


@pytest.mark.parametrize("name", [*trainmaster.__all__, "ClientRefused", "Damaged", "TimedOut"])
def test_the_page_names_what_programs_import(name: str) -> None:
    assert name in TEXT


def test_the_example_is_the_notebooks() -> None:
    sources = ["".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"]]
    assert [block.strip() for block in blocks() if block.strip() in sources] != []
