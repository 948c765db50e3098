"""A program that calls the library of the trainer's image, `trainer.survive`, which is not in its tree.

With a requirements.txt, the local stack gives a script only the packages that this names, and not the trainer's.
"""

import re

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import Level, Location, Subject
from trainmaster.inspect.source.module import last_name
from trainmaster.inspect.source.program import Program
from trainmaster.orchestrator.core.requests.script import REQUIREMENTS
from trainmaster.orchestrator.core.requests.spec import Script

SURVIVE = "trainer.survive"
READER = "settings_from"
FLAGS = (
    "epochs",
    "steps_per_epoch",
    "strategy",
    "batch_size",
    "mixed_precision",
    "jit",
    "steps_per_execution",
    "cache",
    "seed",
    "job_dir",
    "reported_metrics",
    "checkpoint_every_s",
    "checkpoint_steps",
    "peers_within_s",
)
"""The flags that `survive.settings_from` reads; it refuses others. In users' environments the trainer is missing."""
_TENSORFLOW = re.compile(
    r"^[ \t]*(?:tensorflow(?:[-_](?:cpu|intel))?|tf[-_](?:nightly|keras)\S*)\s*(?:[\[<>=!~;@#]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_ELSEWHERE = re.compile(r"^[ \t]*(?:-|\S+://|\S*/)", re.MULTILINE)
"""Options, such as another file of requirements, and addresses: what they install is not known."""


def check(examined: Examined) -> Check:
    request, requirements = examined.request, examined.surroundings.requirements
    if request is None or requirements is None or not isinstance(request.program, Script):
        return
    if not survives(examined.program) or _TENSORFLOW.search(requirements) or _ELSEWHERE.search(requirements):
        return
    yield Subject.REQUIREMENTS.fault(
        found=f"The program imports {SURVIVE}, and {REQUIREMENTS} does not name tensorflow",
        place=Location(path=REQUIREMENTS),
        level=Level.WARNING,
        repair="Add the lines `tensorflow`, `tensorboard` and `tf-keras`.",
    )


def survives(program: Program) -> bool:
    """Whether it imports the library of the trainer's image, and contains no package with that name."""
    package = SURVIVE.partition(".")[0]
    return not {package, SURVIVE}.isdisjoint(program.unread) and SURVIVE in {
        *program.imported,
        *program.unread,
    }


def reads_settings(program: Program) -> bool:
    """Whether the library reads the flags that the program itself does not declare, and refuses unknown ones."""
    return survives(program) and any(last_name(call.func) == READER for _, call in program.calls())


def has_all_flags(program: Program) -> bool:
    """Whether every flag of the program is in its source or among the library's."""
    package = SURVIVE.partition(".")[0]
    others = [name for name in program.unread if name.partition(".")[0] != package]
    return program.is_whole or (survives(program) and not others and not program.unparsed)
