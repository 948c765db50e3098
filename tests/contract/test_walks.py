"""Upper limits of what a reader walks through: the files that run from an entry point's flow to its acknowledgement.

A file counts when one of its functions is entered; lambdas and the adapters in memory do not count.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.contract.world import INBOX, OBJECT, REQUEST, World
from trainmaster.orchestrator.flows.intake import take_upload
from trainmaster.orchestrator.flows.queue_pass import complete_and_admit
from trainmaster.orchestrator.flows.services import FlowResult

ORCHESTRATOR = Path(__file__).resolve().parents[2] / "trainmaster" / "orchestrator"


@contextmanager
def files_entered() -> Iterator[set[Path]]:
    """The orchestrator's files of which the body enters a function."""
    entered: set[Path] = set()

    # Any: what the interpreter passes.
    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name not in {"<lambda>", "<module>"}:
            entered.add(Path(code.co_filename))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(before)
    entered.intersection_update(ORCHESTRATOR.rglob("*.py"))
    entered.discard(ORCHESTRATOR / "adapters" / "memory.py")


def upload(world: World) -> Callable[[], list[FlowResult]]:
    generation = world.objects.write(INBOX, OBJECT, REQUEST, if_generation=None)
    event = {
        "bucket": INBOX,
        "name": OBJECT,
        "generation": str(generation),
        "size": str(len(REQUEST)),
        "timeCreated": world.clock.now().isoformat(),
    }
    services, envelope = world.services(), world.envelope(event)
    return lambda: list(take_upload(services, envelope))


def completion(world: World) -> Callable[[], list[FlowResult]]:
    (submitted,) = upload(world)()
    hint = world.hint(world.train(world.record(submitted.run_id)))
    services = world.services()
    return lambda: list(complete_and_admit(services, hint))


@pytest.mark.parametrize(
    ("prepared", "ends_with", "most_files", "most_folders"),
    [(upload, "the job was submitted", 51, 12), (completion, "the run succeeded", 38, 12)],
)
def test_an_event_walks_through_few_files(
    prepared: Callable[[World], Callable[[], list[FlowResult]]],
    ends_with: str,
    most_files: int,
    most_folders: int,
) -> None:
    prepared(World())()  # what is cached on first use is the same in every process
    flow = prepared(World())
    with files_entered() as files:
        results = flow()
    assert results[0].message.startswith(ends_with)
    assert len(files) <= most_files, sorted(path.relative_to(ORCHESTRATOR).as_posix() for path in files)
    assert len({path.parent for path in files}) <= most_folders
