"""Examples of several forms: batched, of different lengths, few, or with weights of classes."""

from typing import Any

import pytest

from tests.trainer.conftest import cases_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
KERAS = ("Keras 2", "Keras 3")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return cases_of("tests.trainer.example_cases", tmp_path_factory)


@pytest.mark.parametrize("keras", KERAS)
@pytest.mark.parametrize(
    ("case", "given", "taken"),
    [
        ("sequential", "(None, None, 6)", "takes (None, 6)"),
        ("all full", "(None, 16, 6)", "takes (None, 6)"),
        ("by name", "(None, None, 6)", "the input rooms takes (None, 6)"),
        ("in order", "(None, None, 6)", "the input rooms takes (None, 6)"),
    ],
)
def test_batched_examples_are_refused_where_the_model_says_what_it_takes(
    cases: dict[str, Any], keras: str, case: str, given: str, taken: str
) -> None:
    faults = cases[f"batched of {keras}"][case]
    assert [fault.split()[1] for fault in faults] == ["training", "evaluation"][: len(faults)]
    assert len(faults) == (2 if case == "sequential" else 1)
    for fault in faults:
        assert f"a batch of them is {given}, and the input " in fault
        assert fault.endswith(f"{taken}. Leave out batch() in load(): survive.Examples batches by itself.")


@pytest.mark.parametrize("keras", KERAS)
def test_batched_examples_are_warned_of_where_the_model_does_not_say_what_it_takes(
    cases: dict[str, Any], keras: str
) -> None:
    outcomes = cases[f"batched of {keras}"]
    for messages, splits in (
        (outcomes["lazy"], ["training"]),
        (outcomes["own call"], ["training", "evaluation"]),
    ):
        starts = [
            f"each of the {split} examples looks like a batch of 16: leave out batch()" for split in splits
        ]
        assert [message[: len(start)] for message, start in zip(messages, starts, strict=True)] == starts


@pytest.mark.parametrize("keras", KERAS)
def test_ordinary_examples_are_neither_refused_nor_warned_of(cases: dict[str, Any], keras: str) -> None:
    """Images with labels or with masks, of known and unknown sizes, sequences, and inputs by name and in order."""
    assert cases[f"accepted of {keras}"] == [[]] * 9


def test_an_export_takes_padded_inputs_of_any_length(cases: dict[str, Any]) -> None:
    assert cases["signature"] == [None, None]


def test_examples_of_different_shapes_are_blamed_with_the_repair_and_not_the_model(
    cases: dict[str, Any],
) -> None:
    shapes, ragged, too_few, other_type = cases["not padded"]
    assert shapes.startswith("Examples of different shapes cannot make a batch: x is [")
    for fault in (shapes, ragged):
        assert "Give survive.Examples pad=True, which pads them to the longest of a batch, or make" in fault
    assert too_few.startswith("pad=(0,) does not fit the examples: ")
    assert "convert 'none' to EagerTensor of dtype int32. Give True, or a value for each tensor" in other_type


@pytest.mark.parametrize("keras", KERAS)
def test_class_weights_give_a_batch_the_loss_that_fit_gives_it(cases: dict[str, Any], keras: str) -> None:
    """Labels as numbers, one-hot and in one column; in Keras 2 with weights of examples, too."""
    losses = cases[f"class weights of {keras}"]
    assert len(losses) == (6 if keras == "Keras 2" else 3)
    for ours, of_fit in losses.values():
        assert ours == pytest.approx(of_fit, rel=1e-5)


def test_a_class_without_a_weight_has_the_weight_1(cases: dict[str, Any]) -> None:
    assert cases["weights of classes"] == [[1, 3, 1, 1], [1, 3]]


def test_class_weights_are_refused_without_labels_of_one_output_or_classes(cases: dict[str, Any]) -> None:
    *expected, unlabelled, several = cases["no weights of classes"]
    assert [fault.split("found ")[1] for fault in expected] == ["'balanced'.", "{'a': 1.0}."]
    for fault in (unlabelled, several):
        assert "expected those of one output" in fault
        assert fault.endswith("give each example its weight: (x, y, weight).")


def test_metrics_that_keras_3_takes_for_weights_of_losses_are_named(cases: dict[str, Any]) -> None:
    (fault,) = cases["metrics without a name"]
    assert fault.startswith("model.compile: loss_weights=['mae'] are metrics.")
    assert fault.endswith("write metrics=[…] by name.")


def test_fewer_examples_than_a_step_are_warned_of_with_the_batch_size_that_fits(
    cases: dict[str, Any],
) -> None:
    (five,), (one,), enough = cases["few"]
    assert five.startswith(
        "5 training examples do not fill a step's 16: each step trains on every one about 3.2"
    )
    assert five.endswith("Use --batch_size=2")
    assert one.endswith("Use more examples, or fewer than 2 replicas")
    assert enough == []
