"""The page of the Python interface has the signature of every public name, and no other; its example is the notebook's."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainmaster

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/python.md"
SOURCE = ROOT / "trainmaster/client/connection.py"
CLASSES = ("Connection", "RunHandle", "ModelHandle", "ChampionHandle")


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def bare(text: str) -> str:
    """Without white space, quotes of names that are defined later, and the comma behind the last argument."""
    return re.sub(r"[\s\"]", "", text).replace(",)->", ")->")


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> str:
    given = (
        ast.unparse(function.args)
        .removeprefix("self, ")
        .removeprefix("self")
        .replace("'RunHandle'", "RunHandle")
    )
    returned = ast.unparse(function.returns).replace("'", "") if function.returns else ""
    is_async = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    is_value = any(ast.unparse(each) == "property" for each in function.decorator_list)
    return (
        f"{prefix}{function.name}: {returned}"
        if is_value
        else f"{is_async}{prefix}{function.name}({given}) -> {returned}"
    )


def signatures() -> Iterator[str]:
    for node in ast.parse(SOURCE.read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield signature(node, "")
        if not isinstance(node, ast.ClassDef) or node.name not in CLASSES:
            continue
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_"):
                yield signature(each, f"{node.name}.")
            if isinstance(each, ast.AnnAssign) and not ast.unparse(each.target).startswith("_"):
                yield f"{node.name}.{ast.unparse(each.target)}: {ast.unparse(each.annotation)}"


def shown() -> list[str]:
    names = "|".join(("connect", *CLASSES))
    return [
        entry
        for block in blocks()
        for entry in re.split(rf"^(?=(?:async )?(?:{names})[.(])", block, flags=re.MULTILINE)
        if re.match(rf"(?:async )?(?:{names})[.(]", entry)
    ]


def test_the_page_has_the_signature_of_every_public_name_and_no_other() -> None:
    assert sorted(map(bare, shown())) == sorted(map(bare, signatures()))


@pytest.mark.parametrize("name", [*trainmaster.__all__, "ClientRefused", "Damaged"])
def test_the_page_names_what_programs_import(name: str) -> None:
    assert name in PAGE.read_text()


def test_the_example_is_the_notebooks() -> None:
    notebook = json.loads((ROOT / "examples/notebook/first_champion.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    (example,) = (block for block in blocks() if block.startswith("tm ="))
    assert example.strip() in sources
