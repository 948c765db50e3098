"""Values that one workload alone takes."""

from collections.abc import Callable

import pytest

from trainer.settings.setting import number, one_of, text_of, whole_number
from trainer.settings.settings import Settings
from trainer.workloads import names, names_with, workload_named

UNITS = whole_number(1, 512)
SHIFT = whole_number()
RATE = number(minimum=0)
CEILING = number(maximum=1)
KIND = one_of("relu", "tanh")


@pytest.mark.parametrize(
    ("reads", "text", "value"),
    [
        (UNITS, "64", 64),
        (UNITS, "64.0", 64),
        (UNITS, "512", 512),
        (SHIFT, "-3", -3),
        (RATE, "0", 0.0),
        (RATE, "1e-4", 0.0001),
        (CEILING, "-2.5", -2.5),
        (KIND, "tanh", "tanh"),
    ],
)
def test_a_value_is_read_as_its_kind(reads: Callable[[str], object], text: str, value: object) -> None:
    found = reads(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("reads", "text", "expected"),
    [
        (UNITS, "0", "a whole number from 1 to 512"),
        (UNITS, "64.5", "a whole number from 1 to 512"),
        (UNITS, "inf", "a whole number from 1 to 512"),
        (SHIFT, "", "a whole number"),
        (RATE, "-0.1", "a number of at least 0"),
        (RATE, "nan", "a number of at least 0"),
        (CEILING, "1.1", "a number of at most 1"),
        (CEILING, "much", "a number of at most 1"),
        (KIND, "Relu", "one of relu, tanh"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_what_would_be_taken(
    reads: Callable[[str], object], text: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=f"^{expected}$"):
        reads(text)


@pytest.mark.parametrize("name", names())
def test_the_defaults_of_every_workload_are_values_it_takes(name: str) -> None:
    workload = workload_named(name)
    assert "accuracy" in workload.metrics
    for parameter in workload.flags.values():
        if parameter.default is not None:
            assert parameter.reads(text_of(parameter.default)) == parameter.default
    assert Settings(**workload.defaults).faults() == []


def test_a_flag_leads_to_the_workloads_that_have_it() -> None:
    assert names_with("num_units") == ["horses_or_humans"]
    assert names_with("epochs") == []
    assert names_with("learning_rate") == names()
