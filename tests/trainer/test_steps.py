"""The trainer's own steps against Keras', against arithmetic, and against each other, on two devices."""

import math
from typing import Any

import pytest

from tests.trainer.conftest import cases_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
KERAS = ("Keras 2", "Keras 3")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return cases_of("tests.trainer.step_cases", tmp_path_factory)


def test_steps_leave_the_weights_averages_and_metrics_that_fit_leaves(cases: dict[str, Any]) -> None:
    assert cases["plain of Keras 2"] == cases["by fit"]


def test_keras_3_reaches_the_metrics_of_keras_2(cases: dict[str, Any]) -> None:
    reached = cases["plain of Keras 3"]["logs"]
    assert reached == pytest.approx(cases["plain of Keras 2"]["logs"], rel=1e-4)


def test_batch_normalization_of_keras_3_leaves_the_mean_of_the_devices_averages(
    cases: dict[str, Any],
) -> None:
    (expected,) = cases["plain of Keras 2"]["moving means"]
    (found,) = cases["plain of Keras 3"]["moving means"]
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("keras", KERAS)
def test_compiled_steps_leave_what_others_leave(cases: dict[str, Any], keras: str) -> None:
    plain, compiled = cases[f"plain of {keras}"], cases[f"compiled, three at once of {keras}"]
    assert compiled["logs"] == pytest.approx(plain["logs"], rel=1e-4)
    for one, other in zip(compiled["weights"], plain["weights"], strict=True):
        assert one == pytest.approx(other, abs=1e-4)


@pytest.mark.parametrize("keras", KERAS)
def test_an_evaluation_gives_each_example_the_same_weight_in_a_smaller_last_batch_too(
    cases: dict[str, Any], keras: str
) -> None:
    """Of Keras 2 batch by batch, of Keras 3 three at once, prepared on the device."""
    found = cases[f"evaluated of {keras}"]
    assert found["by steps"] == pytest.approx(found["whole"], rel=1e-5)


@pytest.mark.parametrize("keras", KERAS)
def test_a_step_whose_float16_gradients_overflow_on_any_device_is_skipped_and_the_scale_halved(
    cases: dict[str, Any], keras: str
) -> None:
    start, overflow, later = cases[f"overflowed of {keras}"]
    assert overflow == start
    assert later != start
    assert all(math.isfinite(value) for values in later for value in values)


def test_examples_that_are_prepared_on_the_device_train_as_if_they_had_been_before(
    cases: dict[str, Any],
) -> None:
    assert cases["halves"] == cases["plain of Keras 2"]


@pytest.mark.parametrize("keras", KERAS)
def test_the_learning_rate_rises_in_the_first_steps_and_is_whole_between_them(
    cases: dict[str, Any], keras: str
) -> None:
    """What a checkpoint holds, the whole rate and the number of steps, is all that the next step depends on."""
    assert cases[f"warming up of {keras}"] == cases[f"warmed by hand of {keras}"]
    assert cases[f"warming up of {keras}"]["weights"] != cases[f"plain of {keras}"]["weights"]


def test_several_steps_in_one_call_leave_what_single_ones_leave_while_the_rate_rises_too(
    cases: dict[str, Any],
) -> None:
    assert cases["warming up, three at once"] == cases["warming up of Keras 2"]


@pytest.mark.parametrize("schedule", [*(f"schedule of {keras}" for keras in KERAS), "legacy schedule"])
def test_a_warm_up_does_not_change_a_schedule(cases: dict[str, Any], schedule: str) -> None:
    assert "Let the schedule begin with the warm-up" in cases[f"warming up with a {schedule}"]


def test_a_model_with_its_own_step_trains_with_it(cases: dict[str, Any]) -> None:
    assert cases["own step"]["weights"][-1] == [1.0, 1.0, 1.0]


def test_a_model_with_its_own_step_is_not_compiled(cases: dict[str, Any]) -> None:
    assert "--jit: the model's class, OwnStep, has its own train_step" in cases["own step, compiled"]


def test_a_model_of_keras_3_is_refused_with_parameter_servers(cases: dict[str, Any]) -> None:
    assert "Build it with tf.keras, or leave worker pool 2 out" in cases["Keras 3 with parameter servers"]


def test_an_evaluation_of_two_outputs_is_refused_with_parameter_servers(cases: dict[str, Any]) -> None:
    assert "labels for 2 outputs" in cases["two outputs with parameter servers"]


def test_batch_normalization_of_a_nested_backbone_follows_the_length_of_the_run(
    cases: dict[str, Any],
) -> None:
    of_keras, chosen = cases["nested momentum"]
    assert of_keras == pytest.approx(0.8)
    assert chosen == 0.5, "a momentum that the program chose is kept"
