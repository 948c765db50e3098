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


def whole(text: str) -> int | None:
    """The whole number in `text`, or None. Tuning services send 128 as `128.0`."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if math.isfinite(number) and number == int(number) else None


def count(text: str) -> int:
    number = whole(text)
    if number is None or number < 1:
        raise ValueError("a whole number of at least 1")
    return number


def seed(text: str) -> int:
    number = whole(text)
    if number is None or not 0 <= number < 2**31:
        raise ValueError("a whole number from 0 to 2147483647")
    return number


def positive(text: str) -> float:
    message = "a number above 0"
    try:
        number = float(text)
    except ValueError:
        raise ValueError(message) from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(message)
    return number


def momentum(text: str) -> float | None:
    """The momentum, or None for `auto`."""
    if text == "auto":
        return None
    message = "auto, or a number above 0 and below 1"
    try:
        number = positive(text)
    except ValueError:
        raise ValueError(message) from None
    if number >= 1:
        raise ValueError(message)
    return number


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
