"""Whether a challenger is better than the champion, and why."""

import math

from trainmaster.orchestrator.core.champions.champion import Contest, Reign
from trainmaster.orchestrator.core.requests.tuning import Goal


def compared(current: Reign | None, challenger: Reign, margin: float) -> tuple[bool, str]:
    """Whether the challenger replaces the current champion, and the reason.

    It must be better by at least `margin`, which is not negative, in the same contest.
    """
    ours = challenger.contest
    if current is None:
        return True, f"the first, with {ours.metric} {challenger.value:g}"
    theirs = current.contest
    if ours != theirs:
        return (
            False,
            f"it was measured by {_text(ours)}, the champion by {_text(theirs)}: they cannot be compared",
        )
    gain = challenger.value - current.value
    gain = gain if ours.goal is Goal.MAXIMIZE else -gain
    # 0.03 - 0.02 is a little less than 0.01 in floating point, and is meant to be the same.
    if gain > 0 and (gain >= margin or math.isclose(gain, margin, rel_tol=1e-9)):
        return True, f"{ours.metric} {challenger.value:g} beats {current.value:g}"
    wanted = f"better by {margin:g}" if margin else "better"
    return False, f"{ours.metric} {challenger.value:g} is not {wanted} than the champion's {current.value:g}"


def _text(contest: Contest) -> str:
    where = f" on {contest.dataset or 'an unnamed data set'}, split {contest.evaluation_split or 'none'}"
    return f"{contest.metric} ({contest.goal}){where}"
