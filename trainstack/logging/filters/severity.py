"""Severities by name and number.

Source: google.logging.type.LogSeverity, https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity
"""

RANKS = {
    "DEFAULT": 0,
    "DEBUG": 100,
    "INFO": 200,
    "NOTICE": 300,
    "WARNING": 400,
    "ERROR": 500,
    "CRITICAL": 600,
    "ALERT": 700,
    "EMERGENCY": 800,
}
NAMES = {rank: name for name, rank in RANKS.items()}


def severity_name(value: object) -> str:
    """The severity's name, from a name in any case or a number (as a number or as text).

    Raises:
        ValueError: unknown severity.
    """
    if isinstance(value, str) and value.upper() in RANKS:
        return value.upper()
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, int) and not isinstance(number, bool) and number in NAMES:
        return NAMES[number]
    raise ValueError(f"{value!r} is not a severity; expected one of {', '.join(RANKS)} or its number")
