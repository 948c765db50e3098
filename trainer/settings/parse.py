"""A command line as values of settings.

Write `--name=value` or `--name value`. A dash in a name counts as an underscore, so `--job-dir`, which
AI Platform Training passes, is `--job_dir`. If a flag is given twice, the last value counts: a tuning
trial's parameters follow the arguments of its job.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainer.faults import Unusable, nearest
from trainer.settings.setting import Setting, text_of
from trainer.settings.settings import SETTINGS, Settings


def settings_from(arguments: Sequence[str], *, prog: str, defaults: Settings | None = None) -> Settings:
    """The settings that `arguments` give; those of `defaults` for the rest. `--help` prints them and exits with 0.

    Raises:
        Unusable: unknown flags, each with the closest known one, and invalid values; every fault.
    """
    values, faults = read_flags(arguments, {"flags": SETTINGS}, prog=prog)
    if faults:
        raise Unusable(*faults)
    return Settings(**{**vars(defaults or Settings()), **values})


def read_flags(
    arguments: Sequence[str],
    groups: Mapping[str, Mapping[str, Setting]],
    *,
    prog: str,
    description: str | None = __doc__,
    unknown: Callable[[str], str | None] = lambda _: None,
) -> tuple[dict[str, Any], list[str]]:
    """The values that `arguments` give, without defaults, and every fault. `--help` prints all groups and exits with 0.

    `unknown` gives the fault of an unknown flag, by its name; None for the usual one, and an empty text for none.
    """
    known = {name: each for group in groups.values() for name, each in group.items()}
    given, rest = _parser(groups, prog, description).parse_known_args(list(map(_normal, arguments)))
    flags = [each for each in rest if each.startswith("-")]
    faults = [_unknown(each.lstrip("-").partition("=")[0], known, unknown, prog) for each in flags]
    if not flags:
        faults = [f"Unexpected argument {each!r}: it does not belong to any flag." for each in rest]
    values = {}
    for name, text in vars(given).items():
        if text is not None:
            try:
                values[name] = known[name].reads(text)
            except ValueError as error:
                faults.append(f"--{name}={text}: expected {error}; found {text!r}.")
    return values, [fault for fault in faults if fault]


def read_one(arguments: Sequence[str], name: str, default: str) -> str:
    """The text of one flag, before the others are known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(f"--{name}", nargs="?", default=default, const="")
    return str(vars(parser.parse_known_args(list(map(_normal, arguments)))[0])[name]).strip()


def _parser(
    groups: Mapping[str, Mapping[str, Setting]], prog: str, description: str | None
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog, description=description, allow_abbrev=False, exit_on_error=False
    )
    for title, settings in groups.items():
        group = parser.add_argument_group(title)
        for name, each in settings.items():
            text = each.help if each.default is None else f"{each.help} (default: {text_of(each.default)})"
            const, values = ("true", "true|false") if each.is_switch else ("", "VALUE")
            group.add_argument(f"--{name}", nargs="?", const=const, metavar=values, help=text)
    return parser


def _normal(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument[2:].partition("=")
    return f"--{name.replace('-', '_')}{equals}{value}"


def _unknown(name: str, known: Mapping[str, Setting], unknown: Callable[[str], str | None], prog: str) -> str:
    if (fault := unknown(name)) is not None:
        return fault
    return f"Unknown flag {'--' + name!r}.{nearest(name, known)} `{prog} --help` lists all flags."
