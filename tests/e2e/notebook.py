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
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) and not source.endswith(";") else None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = (
            eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            if isinstance(last, ast.Expr)
            else None
        )
    lines = printed.getvalue().splitlines(keepends=True)
    stream = {"name": "stdout", "output_type": "stream", "text": lines}
    result = {"execution_count": number, "metadata": {}, "output_type": "execute_result"}
    shown = [] if value is None else [{"data": {"text/plain": [repr(value)]}, **result}]
    return [*([stream] if lines else []), *shown]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    notebook, names = json.loads(file.read_text()), dict[str, Any]()
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        outputs = outputs_of("".join(cell["source"]), names, number)
        cell |= {"outputs": outputs, "execution_count": number}
    if "--save" in sys.argv:
        file.write_text(f"{json.dumps(notebook, indent=1, ensure_ascii=False)}\n")
    print(json.dumps([cell["outputs"] for cell in cells]))  # noqa: T201 - its result
