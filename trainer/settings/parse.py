"""A command line as values of settings. Needs only Python 3.10, as trainer.launch does."""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.faults import Unusable, nearest
from trainer.settings.setting import Setting, text_of, truth

DESCRIPTION = """The flags of this program say how it trains.

Write `--name=value` or `--name value`. A dash in a name counts as an underscore, so `--job-dir`, which
AI Platform Training passes, is `--job_dir`. If a flag is given twice, the last value counts: a tuning
trial's parameters follow the arguments of its job.
"""


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
    known = {name: each for group in groups.values() for name, each in group.items()}
    given, rest = _parsed(arguments, groups, prog=prog, description=description)
    flags = [each.lstrip("-").partition("=")[0] for each in rest if each.startswith("-")]
    faults = [
        f"Unknown flag {'--' + each!r}.{nearest(each, known)} `{prog} --help` lists all flags."
        for each in flags
    ]
    if not flags:
        faults = [f"Unexpected argument {each!r}: it does not belong to any flag." for each in rest]
    values = {}
    for name, text in given.items():
        try:
            values[name] = known[name].default if text is None else known[name].reads(text)
        except ValueError as error:
            faults.append(f"--{name}={text}: expected {error}; found {text!r}.")
    if faults:
        raise Unusable(*faults)
    return values


def read_one(arguments: Sequence[str], name: str, setting: Setting) -> str:
    """The text of one flag, before the others are known."""
    text = _parsed(arguments, {"": {name: setting}}, add_help=False)[0][name]
    return str(setting.default if text is None else text).strip()


def _parsed(
    arguments: Sequence[str], groups: Mapping[str, Mapping[str, Setting]], **options: Any
) -> tuple[dict[str, str | None], list[str]]:
    """The text of every flag, None where it is not given, and the arguments that are left."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False, **options)
    for title, settings in groups.items():
        group = parser.add_argument_group(title)
        for name, each in settings.items():
            text = each.help if each.default is None else f"{each.help} (default: {text_of(each.default)})"
            const, values = ("true", "true|false") if each.reads is truth else ("", "VALUE")
            group.add_argument(
                f"--{name}", nargs="?", const=const, metavar=values, help=text.replace("%", "%%")
            )
    spelled = [re.sub("(?<=^--)[^=]+", lambda name: name[0].replace("-", "_"), each) for each in arguments]
    try:
        given, rest = parser.parse_known_args(spelled)
    except argparse.ArgumentError as error:  # no other flag has a wrong number of values
        raise Unusable("--help does not take a value. Write it alone: `--help`.") from error
    return vars(given), rest
