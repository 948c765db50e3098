"""Documents as YAML for people: keys in their order, and texts of several lines as such."""

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML writes other line separators as they are, and misreads its own blocks that begin with a blank.
    lines = text.split("\n")
    if not all(map(str.isprintable, lines)):
        style: str | None = '"'
    else:
        style = "|" if len(lines) > 1 and lines[0] and not lines[0][0].isspace() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(document: Any) -> str:  # Any: JSON
    """The document, which a YAML parser reads back as the same value."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
