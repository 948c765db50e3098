"""The replica roles that the program supports: `master`, evaluators and parameter servers.

Found by running them (TensorFlow 2.21): MultiWorkerMirroredStrategy built from a TF_CONFIG whose task is an
evaluator raises KeyError, a `ps` ValueError, `master` ValueError. Vertex AI always says `chief`:
https://cloud.google.com/vertex-ai/docs/training/distributed-training.
"""

import ast

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import Finding, Subject
from trainmaster.inspect.source.module import keyword, words

NAMES = {"ps": "parameter servers", "evaluator": "evaluators"}


def check(examined: Examined) -> Check:
    yield from _only_master(examined)
    request = examined.request
    if request is None or not examined.multi_worker:
        return
    if request.says_master and not _has_its_own_resolver(examined):
        yield _refused_master(examined, request.path)
    for role, replicas in (("ps", request.parameter_servers), ("evaluator", request.evaluators)):
        if replicas:
            yield _without_branch(examined, role)


def _only_master(examined: Examined) -> Check:
    """A chief test that is never true on Vertex AI."""
    compared = [
        (module, node)
        for module, node in examined.program.nodes()
        if isinstance(node, ast.Compare) and "master" in words(node)
    ]
    if not compared or {"chief", "workerpool0"} & examined.program.strings:
        return
    module, node = compared[0]
    yield Subject.ROLES.fault(
        found=f"`{ast.unparse(node)}` recognises the chief only as 'master'",
        place=module.place(node),
        cost="On Vertex AI TF_CONFIG says 'chief': no replica passes this test, so the code behind it never runs.",
        repair="Compare with both: task_type in ('chief', 'master').",
    )


def _has_its_own_resolver(examined: Examined) -> bool:
    return any(
        call.args or keyword(call, "cluster_resolver") is not None for _, call in examined.multi_worker
    )


def _refused_master(examined: Examined, path: str) -> Finding:
    module, call = examined.multi_worker[0]
    if "master" in examined.program.strings:
        return Subject.ROLES.unknown(
            "whether TF_CONFIG's 'master' is renamed before the strategy", module.place(call)
        )
    return Subject.ROLES.fault(
        level=examined.harm(),
        found=f"{path} asks for a TF_CONFIG that says 'master', and the strategy is built from it unchanged",
        place=module.place(call),
        cost="TensorFlow 2 rejects the task type 'master': every replica exits at once.",
        repair="Remove `replica_environment: ai_platform` (useChiefInTfConfig: false), or rename the task in TF_CONFIG first.",
    )


def _without_branch(examined: Examined, role: str) -> Finding:
    module, call = examined.multi_worker[0]
    place = module.place(call)
    step = next((step for step in examined.steps if step.node is call), None)
    if role in examined.program.strings:
        return Subject.ROLES.fine(f"The program handles the role {role!r}", place)
    if step is None or not step.is_certain or _has_its_own_resolver(examined):
        return Subject.ROLES.unknown(f"what the request's {NAMES[role]} do in this program", place)
    return Subject.ROLES.fault(
        found=f"The request has {NAMES[role]}, which also build MultiWorkerMirroredStrategy here",
        place=place,
        cost="TensorFlow rejects that task type in this strategy: these replicas fail, and so does the job.",
        repair=f"Branch on the task type {role!r} before this line, or remove these replicas from the request.",
    )
