"""Parsers of patterns and texts from outside, for `bench/fuzz.py --slow`: each with the texts that it has to match."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from starlette.datastructures import QueryParams

from tests.core.fuzz.parsers import NOON
from tests.core.fuzz.slow import SlowParser
from tests.core.fuzz.text_recipes import grown_from
from tests.stack.jobs.test_filters import labelled
from trainmaster.client.runs.listing import Filters
from trainmaster.client.submission.gitignore.lines import Gitignore
from trainmaster.inspect.smoke.last_error import parse_last_error
from trainmaster.orchestrator.core.admission.prices import series_of
from trainmaster.orchestrator.core.policy.policy import glob_matches
from trainmaster.orchestrator.core.retraining.book import may_hold
from trainmaster.web.faults import WrongQuery
from trainmaster.web.pages.runs import filters_of
from trainmaster.web.subject import Ask
from trainstack.jobs.images.dockerfile import ImageError, read_image
from trainstack.jobs.images.installs import lines_of, names_a_path
from trainstack.jobs.images.recipes import recipe_of
from trainstack.jobs.listing import filters as job_filters
from trainstack.jobs.resource.errors import ApiError
from trainstack.logging.filters import FilterTooCostlyError, FilterWork, LogFilterError, parse_filter
from trainstack.patterns import Pattern
from trainstack.pubsub.checks import filters as message_filters
from trainstack.pubsub.errors import InvalidArgument
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.listing import glob_pattern

_JOB = labelled({"team": "a" * 60})
_ENTRIES = (
    {"textPayload": "ab" * 125_000},
    {"textPayload": "É" * 120_000},
    {"jsonPayload": {f"a{number}": "a" for number in range(15_000)}},
    {"jsonPayload": {"a": ["a"] * 60_000}},
)
_REFUSALS = (
    *(RefusedError, LogFilterError, FilterTooCostlyError, ApiError, InvalidArgument, ImageError),
    WrongQuery,
)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _names(pattern: str, most: int) -> tuple[str, ...]:
    """Names like the pattern, as long as a service allows, which almost match."""
    bare = "".join(char for char in pattern[:most] if char not in "*?[]{},!") or "a"
    return ((bare * most)[:most], "ab" * (most // 2), "a/" * (most // 2), "a" * most)


def _glob(content: bytes) -> object:
    pattern = glob_pattern(_text(content))
    return [pattern.matches(name) for name in _names(_text(content), 1024)]


def _policy_glob(content: bytes) -> object:
    text = _text(content)
    return [
        glob_matches(text, name) or may_hold(text[:1024], f"{name[:1024]}/") for name in _names(text, 4096)
    ]


def _refused_name(content: bytes) -> object:
    return (
        glob_matches("**a*b**c*d", _text(content)),
        series_of(_text(content)),
        Filters(text=_text(content)).text,
    )


def _expression(content: bytes) -> object:
    pattern = Pattern(_text(content))
    return [pattern.is_in(text) for text in ("ab" * 131_072, _text(content)[:200] * 1000)]


def _log_filter(content: bytes) -> object:
    """The entry that takes longest counts alone: a page ends after it."""
    found = parse_filter.__wrapped__(_text(content))
    return [found.passes(entry, FilterWork(entry_bytes=250_000)) for entry in _ENTRIES]


def _job_filter(content: bytes) -> object:
    return job_filters.parse_filter(_text(content))(_JOB)


def _message_filter(content: bytes) -> object:
    return message_filters.parse_filter(_text(content))({"a": "a" * 1024})


def _gitignore(content: bytes) -> object:
    read = Gitignore(content)
    return [
        read.verdict(path, is_folder=False) for path in (b"a" * 255, b"a/" * 500 + b"ab" * 100, content[:200])
    ]


def _image(content: bytes) -> object:
    """What a job does with a source tree that has this Dockerfile."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for part in ("requirements.txt", "a"):
            (tree / part).write_text("packaging\n")
        (tree / "Dockerfile").write_bytes(content)
        return recipe_of(read_image(tree))


def _requirements(content: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "requirements.txt")
        path.write_bytes(content)
        return [names_a_path(line) for line in lines_of(path)]


def _query(content: bytes) -> object:
    given = QueryParams(_text(content)[:65_536])  # as much as the server takes of a request line
    return filters_of(Ask(source=None, now=NOON, query=given))  # type: ignore[arg-type]  # it reads nothing


def _inspected(content: bytes) -> object:
    text = _text(content)
    return parse_last_error(text, Path("/nowhere"))


def _parser(
    name: str, feed: Callable[[bytes], object], examples: Sequence[str], fragments: Sequence[str]
) -> SlowParser:
    draw, change = grown_from(fragments)

    def fed(content: bytes) -> object:
        try:
            return feed(content)
        except _REFUSALS:
            return None

    return SlowParser(name=name, examples=list(examples), feed=fed, draw=draw, change=change)


_GLOBS = (
    "**",
    "**a",
    "*a",
    "?",
    "[a-z]",
    "[!a]",
    "{a,b}",
    "{*a,",
    "}",
    "a*b",
    "**/",
    "[[:alpha:]]",
    "!a",
    "\\*",
)
_BASE = "FROM python:3.11\nCOPY . .\n"
TEXT_PARSERS = (
    _parser("glob of a listing", _glob, ["a/**"], _GLOBS),
    _parser("glob of a policy or rule", _policy_glob, ["gs://data/**"], _GLOBS),
    _parser("name for a glob", _refused_name, ["n1-standard-4"], ["ab", "abcd", "a/b", "9", "-9"]),
    _parser(
        "regular expression", _expression, ["(a+)+b$"],
        ["(a|b", ")*", "(a?", "){9}", "[ab]*", "a{9}", "[ab]{99}", ".*", r"\pL", "(?i)", r"\b", "|a", "^", "$", "+", ")", "b"],
    ),
    _parser(
        "log filter", _log_filter, ['severity>=ERROR AND textPayload=~"a+b"', 'jsonPayload.a:"x"'],
        [
            "a ", "a OR ", "NOT ", "-", '"a" ', "(", ") ", 'textPayload:"x" ', 'textPayload=~"(a|b)+c" ', "jsonPayload.a=b ",
            'jsonPayload.a=~"[ab]*c" ', "jsonPayload:x ", "severity>1 ", "-- a\n", 'a."b".', 'textPayload=("a" OR ', '"a" OR ',
            'timestamp>"2026-01-01" ',
        ],
    ),
    _parser(
        "filter of jobs", _job_filter, ['display_name:"a*"'],
        ["labels.team:a ", "AND ", 'labels.team:"*a*" ', "*a", 'create_time>"2026-01-01" ', "state!=JOB_STATE_FAILED "],
    ),
    _parser("filter of messages", _message_filter, ["attributes:a"], ["NOT ", "attributes:a AND ", "(", "-", '"a'] ),
    _parser(
        ".gitignore", _gitignore, ["*.py[cod]\nbuild/\n"],
        [*_GLOBS, "a\n", "*a\n", "!a\n", "!*a{n}\n", "**/a/**\n", "a{n}\n", "/a{n}/b\n", "a \n", "[[:", "#\n", "[a-", "\r\n"],
    ),
    _parser(
        "Dockerfile", _image, [_BASE + "ENV A=a\n", _BASE + "RUN pip install -r requirements.txt\n"],
        [
            "ENV A=$A$A\n", "ENV A{n}=1\n", "ARG A=${A:-$A}\n", "COPY a /b\n", "COPY a a{n}/\n", "WORKDIR a\n", "RUN a\n", "a;",
            "RUN pip install a\n", "RUN pip install -r requirements.txt\n", "-r requirements.txt ", "pip install -q a && ", "\\\n",
            "${a:-", "$A", "FROM python:3.11 AS a{n}\n", "COPY --from=a{n} a b\n", "RUN ", "#\n", "COPY **/ b/\n", "USER a\n", 'CMD ["a"]\n',
            "RUN --mount=target=/a a\n", "'", "cd a;", "A=1 ",
        ],
    ),
    _parser(
        "requirement file", _requirements, ["numpy==1.0 --hash=sha256:0\n"],
        [
            "a<1,", "<1,", "a\n", "a{n}==1\n", "a; python_version<'3'\n", " and python_version<'3'", "a[b,", "-r b{n}.txt\n", "#\n", " #",
            "./a\n", "a @ https://a/b\n", "--hash=sha256:0 ", "-e ", "a.whl\n", "; (", "\\\n",
        ],
    ),
    _parser(
        "query of the console", _query, ["state=succeeded&label=a=b&text=x"],
        ["state=a&", "label=a=b&", "text=a&", "a{n}=1&", "&", "%41", "since=2h&", "model=*a&", "=", ";"],
    ),
    _parser(
        "program's last words", _inspected, ['Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: a\n'],
        [
            "Traceback (most recent call last):\n", '  File "a.py", line 1, in a\n', "  a\n", "ValueError: a\n", "error: a\n", "{{a}} ",
            "Exception ignored in: a\n", "Thread 0x1:\n", "usage: ", '"message": "', "Fatal Python error: ", "a: ", "tensorflow", "\x1b[",
        ],
    ),
)  # fmt: skip
