"""Functions that do something are verbs with an object: `record_submission`, not `submitted`.

A name is bare when it is one word, leading underscores left out, and a participle: it ends in -ed or -en, or is one of
IRREGULAR. Such a name does not say whether the function does something or only returns a value. Verbs and nouns that
happen to end so are in NO_PARTICIPLES.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BARE_MOST_PERCENT: Mapping[str, float] = {
    "trainmaster/orchestrator/adapters": 0,
    "trainmaster/orchestrator/core": 2,
    "trainmaster/orchestrator/flows": 0,
    "trainmaster/orchestrator/stores": 0,
    "trainmaster/client": 2,
    "trainmaster/cli": 2,
    "trainmaster/web": 2,
    "trainmaster/deploy": 2,
    "trainmaster/inspect": 2,
    "trainer": 0,
}
"""How many of the functions in a room may have a bare name."""
IRREGULAR = (
    "begun bound brought built caught done drawn dug fed felt found gone got grown heard held kept known laid led left "
    "lent lost made meant met paid sent shown sold spent stood stuck taught thought told torn understood won worn wound"
)
NO_PARTICIPLES = "embed feed happen listen need open screen seed shorten speed token"


def is_bare(name: str) -> bool:
    word = name.lstrip("_")
    ends_so = word.endswith(("ed", "en")) and word not in NO_PARTICIPLES.split()
    return "_" not in word and (ends_so or word in IRREGULAR.split())


def functions(room: str) -> Iterator[tuple[str, str]]:
    """The file and the name of each function and method in the room; a property may be named after its state."""
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node):
                yield path.relative_to(ROOT).as_posix(), node.name


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = (ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list)
    return not {"property", "cached_property"}.isdisjoint(names)


@pytest.mark.parametrize(("room", "most_percent"), BARE_MOST_PERCENT.items())
def test_functions_are_not_named_by_a_bare_participle(room: str, most_percent: float) -> None:
    named = list(functions(room))
    bare = [(path, name) for path, name in named if is_bare(name)]
    assert named
    assert 100 * len(bare) <= most_percent * len(named), bare


@pytest.mark.parametrize("name", ["submitted", "_kept", "taken", "written", "_ended"])
def test_a_participle_alone_is_bare(name: str) -> None:
    assert is_bare(name)


@pytest.mark.parametrize("name", ["record_submission", "kept_count", "put", "read", "open", "__enter__"])
def test_a_verb_or_a_noun_is_not_bare(name: str) -> None:
    assert not is_bare(name)
