"""Faults of a matrix that would not start runs that differ, beyond what a schema can say."""

from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.values import list_at, mapping_at, text_at
from trainmaster.orchestrator.core.requests.checks.tuning import given_flags
from trainmaster.orchestrator.core.requests.draft import Draft
from trainmaster.orchestrator.core.requests.matrix import MATRIX, RUNS_MAX, run_count, words_of
from trainmaster.orchestrator.core.requests.placeholders import MODEL_URI, RUN_ID, START_FLAGS, find_names

OF_RULE = Fault(
    at=(MATRIX,),
    problem="a rule starts one run each time it fires, so its request can have no matrix",
    repair="remove it, or let a tuning choose the values",
)


def matrix_faults(draft: Draft) -> Iterator[Fault]:
    """Every fault of the matrix; none where there is no matrix."""
    matrix, flags = mapping_at(draft.document, MATRIX), given_flags(draft)
    for name in matrix:
        if name in flags:
            problem = "args already has this flag, so each run would receive it twice"
            repair = f"remove --{name} from {flags[name]}, or the name from the matrix"
            yield Fault(at=(MATRIX, name), problem=problem, value=f"--{name}", repair=repair)
        if f"--{name}" in START_FLAGS:
            problem = "a matrix cannot choose the model that a run starts from"
            yield Fault(at=(MATRIX, name), problem=problem, value=name, repair=f"write --{name} in args")
        words = words_of(matrix, name)
        for index, (word, value) in enumerate(zip(words, list_at(matrix, name), strict=True)):
            if word in words[:index]:
                problem = "duplicate value: two runs would be the same"
                yield Fault(at=(MATRIX, name, index), problem=problem, value=value, repair="keep one")
    if matrix:
        yield from _of_whole(draft, run_count(draft.document))


def _of_whole(draft: Draft, count: int) -> Iterator[Fault]:
    if count > RUNS_MAX:
        yield Fault(
            at=(MATRIX,),
            problem="the matrix has too many combinations, each of which would be a run",
            found=str(count),
            allowed=f"at most {RUNS_MAX}",
            repair="list fewer values, or let a tuning choose them",
        )
    if draft.tuning:
        problem = "a request has a matrix or a tuning, not both"
        yield Fault(at=(MATRIX,), problem=problem, repair="remove one of the two")
    uri = text_at(draft.document, MODEL_URI)
    if uri is not None and count > 1 and RUN_ID not in find_names(uri):
        problem = "every run of the matrix would write its model to the same place"
        repair = f"write {uri.rstrip('/')}/${{run_id}}"
        yield Fault(at=(MODEL_URI,), problem=problem, value=uri, repair=repair)
