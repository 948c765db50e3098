"""Runs the code cells of a notebook in their order in this process, as a kernel does, and prints their outputs as JSON.

python -m tests.e2e.notebook FILE [--save]  # --save writes them into the notebook; a stack must run
"""

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def outputs_of(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:  # Any: of a notebook
    """What the cell prints, and the value of an expression at its end, unless a semicolon follows it."""
    tree = ast.parse(source)
    is_shown = isinstance(tree.body[-1], ast.Expr) and not source.endswith(";")
    last = tree.body.pop() if is_shown else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        found.append(
            {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def run_cells(file: Path, *, saves: bool) -> list[list[dict[str, Any]]]:
    notebook, names = json.loads(file.read_text()), dict[str, Any]()
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        cell["outputs"] = outputs_of("".join(cell["source"]), names, number)
        cell["execution_count"] = number
    if saves:
        file.write_text(f"{json.dumps(notebook, indent=1, ensure_ascii=False)}\n")
    return [cell["outputs"] for cell in cells]


if __name__ == "__main__":
    print(json.dumps(run_cells(Path(sys.argv[1]), saves="--save" in sys.argv)))  # noqa: T201 - its result
