"""Services for the suites that need several of them at once."""

import asyncio
import re
from pathlib import Path

from trainstack.iam import Grants
from trainstack.iam.principals import Tokens
from trainstack.logging import Logging
from trainstack.storage.api.routes import Route
from trainstack.vertex import Jobs


def jobs_service(folder: Path, project: str, logging: Logging, tokens: Tokens, grants: Grants) -> Jobs:
    """JobService over the grants, without images; its jobs write their lines to `logging`."""
    return Jobs(
        dir=folder / "jobs",
        buckets_dir=folder / "storage" / "buckets",
        images={},
        write_log=lambda entries: asyncio.to_thread(logging.write, entries),
        project=project,
        tokens=tokens,
        grants=grants,
    )


def path_of(route: Route) -> str:
    """The path of a route of Cloud Storage, with the name of each variable in braces."""
    named = re.sub(r"\(\?P<(\w+)>[^()]*\)", r"{\1}", route.pattern.pattern)
    return re.sub(r"\(\?!\(\?:[^()]*\)/\)|\(\?:[^()]*\)\?", "", named)
