"""An installer's options: those passed to uv, those without effect here, and package indexes."""

import argparse
from collections.abc import Iterable, Mapping, Sequence

_QUIET = (
    ("-q", "--quiet"),
    ("-v", "--verbose"),
    ("-y", "--yes"),
    ("--no-cache-dir", "--no-cache", "-n"),
    ("--compile", "--no-compile", "--compile-bytecode"),
    ("--no-progress",),
)
_QUIET_VALUES = ("--cache-dir", "--link-mode", "--progress-bar", "--python", "-p")
"""Options of several installers that change nothing in an environment that is new and the image's own."""


class _Pass(argparse.Action):
    """Adds an option, with its value where it has one, to `options` under uv's name for it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002  as above
    ) -> None:
        namespace.options = [*namespace.options, self.const, *([str(values)] if self.nargs is None else [])]


def parser_of(
    *,
    flags: Mapping[str, str],
    values: Mapping[str, str],
    quiet: Iterable[Sequence[str]] = (),
    quiet_values: Iterable[str] = (),
) -> argparse.ArgumentParser:
    """A parser that gathers `options` in uv's words, `default_index` and `indexes`, and raises for wrong usage.

    `flags` and `values` are uv's names of what is passed on, by the installer's; `quiet` and `quiet_values` the options
    of this installer that change nothing here.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.set_defaults(options=[])
    for name, here in flags.items():
        parser.add_argument(name, action=_Pass, nargs=0, const=here, dest="options")
    for name, here in values.items():
        parser.add_argument(name, action=_Pass, const=here, dest="options")
    parser.add_argument("-i", "--index-url", "--default-index", default="", dest="default_index")
    parser.add_argument("--extra-index-url", "--index", action="append", default=[], dest="indexes")
    for spellings in (*_QUIET, *quiet):
        parser.add_argument(*spellings, action="store_true", dest="nothing")
    for name in (*_QUIET_VALUES, *quiet_values):
        parser.add_argument(name, dest="nothing")
    return parser
