"""Doubts about a sound rule: what it does may not be what its author meant."""

from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.retraining.condition import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule, WhileRunning

_OF_ONE = ("data.newest_uri", "data.newest_dir_uri")
_OF_ALL = ("data.manifest_uri", "data.dirs", "data.since")


def rule_warnings(rule: Rule) -> Iterator[Fault]:
    """What the runs of a rule for new data do not learn, or do not finish."""
    used = [name for name in _OF_ONE if _uses(rule, name)]
    for number, condition in enumerate(rule.conditions):
        if not isinstance(condition, NewData):
            continue
        at, value = ("when", number, "new_data"), condition.objects
        if condition.each is None and used and not any(_uses(rule, name) for name in _OF_ALL):
            problem = f"a firing may take objects of several folders, and of these ${{{used[0]}}} names one"
            repair = "use ${data.manifest_uri} or ${data.dirs}, or write each: folder"
            yield Fault(at=at, problem=problem, value=value, repair=repair)
        if condition.each is not None and rule.while_running is WhileRunning.REPLACE:
            problem = (
                "with while_running: replace, the firing for a folder ends the run for the folder before"
            )
            repair = "leave out while_running; folders stay due until the run has ended"
            yield Fault(at=at, problem=problem, value=value, repair=repair)


def _uses(rule: Rule, name: str) -> bool:
    return any(placeholder.name == name for placeholder in rule.placeholders)
