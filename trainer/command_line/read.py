"""Values of flags from their text. Each reader raises ValueError whose message says what it takes."""

import math

TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
MAX_SIDE_PX = 4096
MIN_SIDE_PX = 8


def word(text: str) -> str:
    if not text.strip():
        raise ValueError("a value")
    return text.strip()


def words(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise ValueError("words with commas between them")
    return found


def truth(text: str) -> bool:
    if text.lower() not in TRUTHS:
        raise ValueError("true or false")
    return TRUTHS[text.lower()]


def number(text: str) -> float | None:
    """The finite number in `text`, or None."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def whole(text: str) -> int | None:
    """The whole number in `text`, or None. Tuning services send 128 as `128.0`."""
    found = number(text)
    return None if found is None or found != int(found) else int(found)


def count(text: str) -> int:
    return _whole_from(text, 1, math.inf, "a whole number of at least 1")


def seed(text: str) -> int:
    return _whole_from(text, 0, 2**31 - 1, "a whole number from 0 to 2147483647")


def _whole_from(text: str, least: int, most: float, expected: str) -> int:
    found = whole(text)
    if found is None or not least <= found <= most:
        raise ValueError(expected)
    return found


def positive(text: str) -> float:
    found = number(text)
    if found is None or found <= 0:
        raise ValueError("a number above 0")
    return found


def momentum(text: str) -> float | None:
    """The momentum, or None for `auto`."""
    found = number(text)
    if text != "auto" and not (found is not None and 0 < found < 1):
        raise ValueError("auto, or a number above 0 and below 1")
    return found


def image_size(text: str) -> tuple[int, int]:
    """Height and width in pixels."""
    parts = text.lower().split("x")
    sides = [whole(part) for part in parts]
    if len(sides) == 1:
        sides *= 2
    height, width = sides if len(sides) == 2 else (None, None)  # noqa: PLR2004 - height and width
    if height is None or width is None or not all(MIN_SIDE_PX <= s <= MAX_SIDE_PX for s in (height, width)):
        raise ValueError(f"SIDE or HEIGHTxWIDTH in pixels, each from {MIN_SIDE_PX} to {MAX_SIDE_PX}")
    return height, width
