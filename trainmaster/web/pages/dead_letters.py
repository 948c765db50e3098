"""Dead letters: why each event failed, what it says, and replaying it.

Reading them takes seconds, and hides them from other readers meanwhile. So the page is shown first, and asks for the
letters then; it is not live.
"""

import shlex

from trainmaster.client.dead_letters.opened import LetterList, list_letters, open_letters
from trainmaster.client.dead_letters.replay import replay_letters
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.terminal import plural
from trainmaster.web.faults import WrongQuery
from trainmaster.web.people import NotTheirs
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import (
    ActionOutcome,
    ApiRoute,
    Ask,
    ConsoleAction,
    ConsolePage,
    ConsoleSubject,
    Field,
    PageRoute,
    Proposal,
)

ROWS_MAX = 200
"""Letters on the page; the document has all that are read."""
TEXT_MAX_CHARS = 1500
"""Of a payload on the page."""
IDS_MAX = 200
ALL = "all"
OUTCOME_WITHIN_S = 4.0
COMMAND = "trainmaster dead-letters"


def frame(ask: Ask) -> ConsolePage:
    """The page before the letters are read."""
    _refuse_team(ask)
    return _page(None, done=_count(ask, "done"), failed=_count(ask, "failed"))


def _count(ask: Ask, name: str) -> int:
    return ask.whole(name, 1, 10_000) if name in ask.query else 0


def letters(ask: Ask) -> ConsolePage:
    """The letters."""
    return _page(read_letters(ask))


def _page(found: LetterList | None, *, done: int = 0, failed: int = 0) -> ConsolePage:
    """`done` and `failed` count the letters that were just replayed."""
    values = {
        "found": found,
        "rows_max": ROWS_MAX,
        "text_max": TEXT_MAX_CHARS,
        "done": done,
        "failed": failed,
    }
    return ConsolePage(
        title="Dead letters",
        template="dead_letters.html",
        values=values,
        command=f"{COMMAND} ls",
        is_final=True,
    )


def read_letters(ask: Ask, age: AnswerAge = AnswerAge.SLOW) -> LetterList:
    """The letters, read now or at most `age` ago. Raises: NotTheirs: in a team's console."""
    _refuse_team(ask)
    return ask.source.read("dead-letters", age, list_letters)


def _refuse_team(ask: Ask) -> None:
    if ask.person is not None:
        raise NotTheirs(
            "A team's console shows no dead letters: they hold what every team has sent, and its account may not read them."
            f" Those who may, use the command: {COMMAND} ls"
        )


def propose_replay(ask: Ask) -> Proposal:
    """What replaying the letters in the query would do. Raises: NotTheirs: in a team's console."""
    _refuse_team(ask)
    try:
        ids = _ids(" ".join(ask.query.getlist("id")))
    except ClientRefused as refused:
        raise WrongQuery(str(refused)) from refused
    which = plural(len(ids), "dead letter") if ids else "every dead letter"
    return Proposal(
        title=f"Replay {which}?",
        effects=[
            "Each event is published again to the topic that it came from, with the same identity: it starts no second run.",
            "Then it is removed from the dead letters. If it fails again, it becomes a dead letter again after its deliveries.",
            "A letter that does not name its source stays where it is.",
        ],
        command=shlex.join([*COMMAND.split(), "replay", *ids]),
        button="Replay",
        back="/dead-letters",
        fields=[Field(name="ids", label=f"Ids, or {ALL}", value=" ".join(ids) or ALL, required=True)],
    )


def _ids(text: str) -> list[str]:
    """The ids; none for all.

    Raises:
        ClientRefused: the text has no id, or too many.
    """
    ids = list(dict.fromkeys(text.split()))
    if not ids or len(ids) > IDS_MAX:
        raise ClientRefused(
            f"ids: expected 1 to {IDS_MAX} ids, or {ALL!r}, found {len(ids)}: mark the letters to replay"
        )
    return [] if ids == [ALL] else ids


def replay(ask: Ask) -> ActionOutcome:
    """Puts the letters back, and waits a while for the functions' log to report them."""
    _refuse_team(ask)
    ids = _ids(ask.form.get("ids", ""))
    with open_letters(ask.source.clients, ids) as opened:
        if opened.unknown and not opened.chosen:
            raise NotFound(f"No dead letters here: {', '.join(opened.unknown)}")
        done = list(replay_letters(opened, wait_s=OUTCOME_WITHIN_S))
    failed = [each for each in done if not each.well]
    counts = {"done": len({each.letter_id for each in done}), "failed": len(failed)}
    query = "&".join(f"{name}={count}" for name, count in counts.items() if count)
    return ActionOutcome(
        message="\n".join(f"{each.letter_id}: {each.text}" for each in done) or "No dead letters.",
        go_to=f"/dead-letters?{query}" if query else "/dead-letters",
        document={
            "letters": [
                {"id": each.letter_id, "well": each.well, "text": each.text, "run_id": each.run_id}
                for each in done
            ],
            "unknown": list(opened.unknown),
        },
    )


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/dead-letters", show=frame), PageRoute(path="/dead-letters/list", show=letters)],
    api=[
        ApiRoute(
            path="/dead-letters",
            summary="The events that kept failing, with reasons and payloads. Takes seconds.",
            read=lambda ask: read_letters(ask).document,
            schema="dead_letters.v1",
        )
    ],
    actions=[
        ConsoleAction(
            path="/dead-letters/replay",
            summary="Replays dead letters: `ids` has their ids, separated by spaces, or `all`.",
            propose=propose_replay,
            perform=replay,
        )
    ],
)
