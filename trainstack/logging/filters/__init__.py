"""The Logging query language.

Source: https://cloud.google.com/logging/docs/view/logging-query-language

It is a lark grammar, as Google publishes it, so the two can be compared.
"""

from trainstack.logging.filters.parse import Filter, parse_filter
from trainstack.logging.filters.terms import FilterError, FilterTooCostlyError
from trainstack.logging.filters.work import PAGE_STEPS, Work

__all__ = ["PAGE_STEPS", "Filter", "FilterError", "FilterTooCostlyError", "Work", "parse_filter"]
