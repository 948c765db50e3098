"""One setting: how its text is read, what it means, and its default. Flags and pages are made from these.

Readers take a text and raise ValueError with a description of valid values.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from trainer.faults import Unusable, collect_faults, suggestion_for

Number = TypeVar("Number", int, float)
Word = TypeVar("Word", bound=str)
MOST = sys.float_info.max
TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
DESCRIPTION = """The flags of this program say how it trains.

Write `--name=value` or `--name value`. A dash in a name counts as an underscore, so `--job-dir`, which
AI Platform Training passes, is `--job_dir`. If a flag is given twice, the last value counts: a tuning
trial's parameters follow the arguments of its job.
"""


@dataclass(frozen=True)
class Setting:
    """`reads` is a reader. Where `default` is None, the run chooses, and the help ends with `(default: …)`."""

    reads: Callable[[str], Any]  # Any: each setting has its own type
    help: str
    default: Any = None

    def value_from(self, name: str, given: Any) -> Any:
        """What the reader makes of a text, or of a value that is given in Python, for the flag `name`.

        Raises:
            Unusable: the reader does not take it.
        """
        try:
            return self.default if given == self.default else self.reads(text_of(given))
        except ValueError as error:
            raise Unusable(f"--{name}={text_of(given)}: expected {error}; found {given!r}.") from error


def with_defaults(settings: Mapping[str, Setting], defaults: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings, some with other defaults."""
    return {name: replace(old, default=defaults.get(name, old.default)) for name, old in settings.items()}


def text_of(value: Any) -> str:
    """A value as it is written on a command line: words with commas between them, sizes with an x."""
    if isinstance(value, list | tuple):
        return ("," if all(isinstance(item, str) for item in value) else "x").join(map(str, value))
    return str(value)


def word(text: str) -> str:
    if not text.strip():
        raise ValueError("a value")
    return text.strip()


def words(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise ValueError("words with commas between them")
    return parts


def one_of(*choices: Word) -> Callable[[str], Word]:
    """A reader of one of these words, spelled exactly so."""

    def reads(text: str) -> Word:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return next(choice for choice in choices if choice == text)

    return reads


def truth(text: str) -> bool:
    if text.lower() not in TRUTHS:
        raise ValueError("true or false")
    return TRUTHS[text.lower()]


def number(minimum: float | None = None, maximum: float | None = None) -> Callable[[str], float]:
    """A reader of finite numbers; the limits are inclusive."""
    return _number_reader(float, f"a number{_limits(minimum, maximum)}", minimum, maximum)


def whole_number(minimum: int | None = None, maximum: int | None = None) -> Callable[[str], int]:
    """A reader of whole numbers; the limits are inclusive. Tuning services write 128 as `128.0`, too."""
    return _number_reader(int, f"a whole number{_limits(minimum, maximum)}", minimum, maximum)


def _limits(low: float | None, high: float | None) -> str:
    if high is None:
        return "" if low is None else f" of at least {low}"
    return f" of at most {high}" if low is None else f" from {low} to {high}"


def _number_reader(
    kind: Callable[[float], Number], expected: str, low: float | None, high: float | None = None
) -> Callable[[str], Number]:
    least, most = -MOST if low is None else low, MOST if high is None else high

    def reads(text: str) -> Number:
        with suppress(ValueError):
            # Holds for no infinity, and for nothing that is not a number.
            if least <= (value := float(text)) <= most and value == kind(value):
                return kind(value)
        raise ValueError(expected)

    return reads


positive = _number_reader(float, "a number above 0", math.ulp(0.0))
count = whole_number(1)


def step_range(text: str) -> str:
    """Two steps, counted from 1, with a comma between them; as TensorBoard's `profile_batch` takes them."""
    steps = re.fullmatch(r"([1-9]\d*)[,x]([1-9]\d*)", text)  # `text_of` a pair has an x
    if steps is None or int(steps[1]) > int(steps[2]):
        raise ValueError("FIRST,LAST: two steps, counted from 1")
    return ",".join(steps.groups())


def read_flags(
    arguments: Sequence[str],
    groups: Mapping[str, Mapping[str, Setting]],
    *,
    prog: str,
    description: str = DESCRIPTION,
) -> dict[str, Any]:
    """The value of every setting, its default where `arguments` give none. `--help` prints all and exits with 0.

    Raises:
        Unusable: every fault.
    """
    known = {name: setting for group in groups.values() for name, setting in group.items()}
    given, rest = _parse_flags(arguments, groups, prog=prog, description=description)
    flags = [argument.lstrip("-").partition("=")[0] for argument in rest if argument.startswith("-")]
    faults = [
        f"Unknown flag {'--' + flag!r}.{suggestion_for(flag, known)} `{prog} --help` lists all flags."
        for flag in flags
    ]
    if not flags:
        faults = [f"Unexpected argument {argument!r}: it does not belong to any flag." for argument in rest]
    values = {}
    for name, text in given.items():
        with collect_faults(faults):
            values[name] = known[name].value_from(name, text)
    if faults:
        raise Unusable(*faults)
    return values


def read_one(arguments: Sequence[str], name: str, setting: Setting) -> str:
    """The text of one flag, before the others are known."""
    return str(_parse_flags(arguments, {"": {name: setting}}, add_help=False)[0][name]).strip()


def _parse_flags(
    arguments: Sequence[str], groups: Mapping[str, Mapping[str, Setting]], **options: Any
) -> tuple[dict[str, Any], list[str]]:
    """The text of every flag, its default where it is not given, and the arguments that are left."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False, **options)
    for title, settings in groups.items():
        group = parser.add_argument_group(title)
        for name, flag in settings.items():
            text = flag.help if flag.default is None else f"{flag.help} (default: {text_of(flag.default)})"
            const, values = ("true", "true|false") if flag.reads is truth else ("", "VALUE")
            how = {"nargs": "?", "const": const, "metavar": values, "default": flag.default}
            group.add_argument(f"--{name}", help=text.replace("%", "%%"), **how)
    spelled = [re.sub("(?<=^--)[^=]+", lambda name: name[0].replace("-", "_"), text) for text in arguments]
    try:
        given, rest = parser.parse_known_args(spelled)
    except argparse.ArgumentError as error:  # no other flag has a wrong number of values
        raise Unusable("--help does not take a value. Write it alone: `--help`.") from error
    return vars(given), rest
