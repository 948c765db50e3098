"""The matrix of a request: values by the name of an argument, each combination of which is a run of its own.

The values of a combination are appended to the arguments of all roles' programs as `--name=value`, as Vertex AI passes a
tuning's parameters. The document of each run has them in its `args`, and no matrix.
"""

import json
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from trainmaster.orchestrator.core.documents.values import list_at, mapping_at
from trainmaster.orchestrator.core.requests.draft import ROLES, names_program
from trainmaster.orchestrator.core.requests.placeholders import ARGS, literal

MATRIX = "matrix"
RUNS_MAX = 64
"""Of one matrix: as many submissions as Vertex AI takes in about a minute."""


def run_count(document: Mapping[str, object]) -> int:
    """How many runs the request starts: one without a matrix."""
    matrix = mapping_at(document, MATRIX)
    return prod(len(list_at(matrix, name)) for name in matrix)


# Any: values of a JSON document.
def run_documents(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The document of each run of a sound request: the values of the last name change first."""
    matrix = mapping_at(document, MATRIX)
    return [_with_words(document, words) for words in product(*(words_of(matrix, name) for name in matrix))]


def words_of(matrix: Mapping[str, object], name: str) -> list[str]:
    """The argument for each value of the name."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in list_at(matrix, name))
    return [f"--{name}={text}" for text in texts]


def _with_words(document: Mapping[str, Any], words: tuple[str, ...]) -> dict[str, Any]:
    own = {key: value for key, value in document.items() if key != MATRIX}
    if not words:
        return own
    more = [str(literal(word)) for word in words]
    pools = {role: own["cluster"][role] for role in ROLES if role in own.get("cluster", {})}
    changed = {
        role: {**pool, ARGS: [*list_at(pool, ARGS), *more]}
        for role, pool in pools.items()
        if ARGS in pool or names_program(pool)
    }
    if changed:
        own["cluster"] = {**own["cluster"], **changed}
    if not pools or len(changed) < len(pools):  # without a cluster there will be a chief
        own[ARGS] = [*list_at(own, ARGS), *more]
    return own
