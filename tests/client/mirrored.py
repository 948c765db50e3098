"""The inbox and ledger of a simulated deployment, on a real storage server: for commands that read what the flows wrote."""

import json
from datetime import timedelta
from typing import Any

from tests.client.served import Served
from tests.contract.retraining import SMALL
from tests.contract.rooms import GPU, Room, limited
from tests.contract.world import INBOX, LEDGER, World
from trainmaster.orchestrator.core.policy.admission import Limit
from trainmaster.orchestrator.core.sizes import MAX_BOOK_BYTES


def mirror(world: World, served: Served) -> None:
    """Copy every object of the inbox and the ledger, with its metadata."""
    context = served.clients.context
    for name, copied in ((INBOX, context.inbox_bucket), (LEDGER, context.ledger_bucket)):
        bucket = served.clients.storage.bucket(copied)
        for listed in world.objects.listing(name, ""):
            blob = bucket.blob(listed.name)
            blob.metadata = dict(listed.metadata)
            blob.upload_from_string(world.objects.read(name, listed.name, max_bytes=MAX_BOOK_BYTES).content)


def launch(world: World, name: str, **changes: Any) -> str:
    """The id of the run that an upload of that name starts, a second later."""
    world.clock.advance(timedelta(seconds=1))
    incoming = world.drop(json.dumps({**SMALL, **changes}).encode(), f"requests/{name}.json")
    world.launch(incoming)
    return incoming.run_id


def queueing_world() -> World:
    """One run has a job; two wait for its limit, and two others for GPUs."""
    world = limited(Limit(jobs=1, per_model=True))
    room = Room(world)
    launch(world, "flowers-a", model_name="flowers")
    launch(world, "flowers-b", model_name="flowers")
    launch(world, "flowers-c", model_name="flowers", priority=90)
    room.places = 1
    launch(world, "cassava-a", model_name="cassava", **GPU)
    launch(world, "leaves-a", model_name="leaves", **GPU)
    world.clock.advance(timedelta(seconds=10))
    return world
