"""The Logging query language.

Source: https://cloud.google.com/logging/docs/view/logging-query-language
"""

from trainmaster.local.logging.filters.parse import Filter, parse_filter
from trainmaster.local.logging.filters.terms import FilterError

__all__ = ["Filter", "FilterError", "parse_filter"]
