"""The Logging query language.

Source: https://cloud.google.com/logging/docs/view/logging-query-language

It is a lark grammar, as Google publishes it, so the two can be compared.
"""

from trainstack.logging.filters.parse import LogFilter, parse_filter
from trainstack.logging.filters.terms import PAGE_STEPS, FilterTooCostlyError, FilterWork, LogFilterError

__all__ = ["PAGE_STEPS", "FilterTooCostlyError", "FilterWork", "LogFilter", "LogFilterError", "parse_filter"]
