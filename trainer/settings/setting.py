"""One setting: how its text is read, what it means, and its default. Flags and pages are made from these."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from trainer.settings import read


@dataclass(frozen=True)
class Setting:
    """`reads` takes a text and raises ValueError with a description of valid values.

    `default` may be None: then the choice is left to the run, or the help says what counts.
    """

    reads: Callable[[str], Any]  # Any: each setting has its own type
    help: str
    default: Any = None

    @property
    def is_switch(self) -> bool:
        """Whether a flag without a value counts as true."""
        return self.reads is read.truth


def setting(reads: Callable[[str], Any], text: str, default: Any = None) -> Any:
    """A field of a dataclass that is also a setting."""
    return field(default=default, metadata={"setting": Setting(reads, text, default)})


def settings_of(kind: type) -> dict[str, Setting]:
    """The settings among the fields of a dataclass, by name."""
    return {each.name: each.metadata["setting"] for each in fields(kind)}


def number(
    *,
    default: float,
    help: str,  # noqa: A002 - as the field's name
    minimum: float | None = None,
    maximum: float | None = None,
) -> Setting:
    """A finite number; the limits are inclusive."""
    return Setting(read.within(read.number, "a number", minimum, maximum), help, default)


def whole_number(
    *,
    default: int,
    help: str,  # noqa: A002 - as above
    minimum: int | None = None,
    maximum: int | None = None,
) -> Setting:
    """A whole number; the limits are inclusive. Tuning services write it as `128.0` too, which is read as 128."""
    return Setting(read.within(read.whole, "a whole number", minimum, maximum), help, default)


def one_of(*, default: str, choices: tuple[str, ...], help: str) -> Setting:  # noqa: A002 - as above
    """A word of `choices`, spelled exactly so."""
    return Setting(read.choice(choices), help, default)


def text_of(value: Any) -> str:
    """A value as a command line has it: words with commas between them, sizes with an x."""
    if isinstance(value, tuple):
        return ("," if all(isinstance(each, str) for each in value) else "x").join(map(str, value))
    return str(value)


def with_defaults(settings: Mapping[str, Setting], defaults: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings, some with other defaults."""
    return {name: replace(each, default=defaults.get(name, each.default)) for name, each in settings.items()}
