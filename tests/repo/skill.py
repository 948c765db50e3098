"""Writes the table of tools in docs/how-to/agents.md, and the wheel's skill file from that page: `python -m tests.repo.skill`."""

import re
from collections.abc import Mapping
from pathlib import Path

from trainmaster.cli.mcp import tools

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "agents.md"
SKILL = Path(tools.__file__).with_name("SKILL.md")
BEGIN, TABLE, END = (
    "<!-- skill: begin -->\n",
    "<!-- written by: python -m tests.repo.skill -->\n",
    "<!-- skill: end -->",
)
HEAD = """\
---
name: trainmaster
description: Train models on Vertex AI or its local stack with the tools of `trainmaster mcp`. Check, plan, submit within a budget, wait, and explain.
---

# Trainmaster's tools

"""


def files() -> Mapping[Path, str]:
    """The page with its table, and the skill file, as they should be."""
    above, _, rest = PAGE.read_text().partition(TABLE)
    table = "| tool | what it does | arguments |\n|---|---|---|\n"
    for tool in tools.read_tools(is_read_only=False).values():
        names = (f"`{name}`{'' if name in tool.needs else '?'}" for name in tool.takes)
        table += f"| `{tool.name}` | {tool.description} | {', '.join(names)} |\n"
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", above.partition(BEGIN)[2])  # no links
    return {PAGE: f"{above}{TABLE}{table}{END}{rest.partition(END)[2]}", SKILL: f"{HEAD}{text}{table}"}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
