"""Workloads that classify the images of a TFDS data set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from trainer.data.examples import Examples
from trainer.images.weights import Pretrained, starting_weights
from trainer.settings.setting import Setting, positive, text_of, whole_number, word
from trainer.workload import Data, TrainingRun, Workload

MIN_SIDE_PX, MAX_SIDE_PX = 8, 4096


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The inputs of a classifier's `build`; `hyperparameters` has the values of its flags."""

    image_size: tuple[int, int]  # height, width in pixels
    classes: int
    learning_rate: float
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    weights_path: str | None = None  # a file to start from; None: random values


def image_classification(
    *,
    build: Callable[[ModelSpec], Any],
    dataset: str,
    image_size: tuple[int, int],
    batch_size: int,
    epochs: int,
    learning_rate: float,
    hyperparameters: Mapping[str, Setting] | None = None,
    mirrored: bool = False,
    pretrained: Pretrained | None = None,
    augment: Callable[[Any, Any], Any] | None = None,
    callbacks: Callable[[TrainingRun], Sequence[Any]] = lambda _: (),
) -> Workload:
    """A classifier, with the defaults of its flags. Arguments are those of Workload and TrainingSettings, and:

    build: returns a compiled Keras model: float32 [batch, height, width, 3] from 0 to 1 in, probabilities float32
        [batch, classes] out. Two classes may have one sigmoid unit, [batch, 1], the probability of the second.
        Raises Unusable if the spec does not fit the model.
    image_size: height and width in pixels.
    hyperparameters: additional flags, by name.
    pretrained: public weights that `build` can load.
    augment: of an image, uint8 [height, width, 3], and a seed, int64 [2], the image to train on; see Examples.
    """
    return Workload(
        build=lambda run: build(spec_of(run)),
        data=partial(_data_from, pretrained=pretrained, augment=augment),
        flags={**_image_flags(dataset, image_size, learning_rate), **(hyperparameters or {})},
        defaults={"batch_size": batch_size, "epochs": epochs},
        callbacks=callbacks,
        serving=_image_signatures,
        mirrored=mirrored,
    )


def _image_flags(dataset: str, size: tuple[int, int], learning_rate: float) -> dict[str, Setting]:
    return {
        "dataset": Setting(
            word,
            "any TFDS data set whose supervised keys are an 8-bit image and a class label: NAME, NAME/CONFIG or "
            "NAME:VERSION",
            dataset,
        ),
        "data_dir": Setting(
            word,
            "TFDS data directory, a path or a gs:// URI, where the data set is prepared if it is missing (default: "
            "TFDS_DATA_DIR, else TFDS's default)",
        ),
        "train_split": Setting(
            word, "TFDS split to train on, or a slice such as train[:80%] (default: train)"
        ),
        "evaluation_split": Setting(
            word,
            "TFDS split to evaluate on after each epoch, or none (default: validation, else test, else none)",
        ),
        "image_size": Setting(
            read_size, "image size in pixels: SIDE or HEIGHTxWIDTH; the aspect ratio is not kept", size
        ),
        "learning_rate": Setting(positive, "learning rate of the optimizer", learning_rate),
        "weights": Setting(
            word,
            "initial weights: imagenet, random, a path or gs:// URI of a file, or auto: the public ones if there are any",
            "auto",
        ),
    }


def read_size(text: str) -> tuple[int, int]:
    """Height and width in pixels."""
    sides = text.lower().split("x")
    try:
        height, width = map(whole_number(MIN_SIDE_PX, MAX_SIDE_PX), sides * 2 if len(sides) == 1 else sides)
    except ValueError:
        raise ValueError(
            f"SIDE or HEIGHTxWIDTH in pixels, each from {MIN_SIDE_PX} to {MAX_SIDE_PX}"
        ) from None
    return height, width


def spec_of(run: TrainingRun) -> ModelSpec:
    """What a classifier's `build` gets in this run."""
    return ModelSpec(
        image_size=run.flags["image_size"],
        classes=len(run.data.description["class_names"]),
        learning_rate=run.flags["learning_rate"],
        hyperparameters=run.flags,
        weights_path=None if run.weights.path is None else str(run.weights.path),
    )


def _data_from(
    run: TrainingRun, *, pretrained: Pretrained | None, augment: Callable[[Any, Any], Any] | None
) -> Data:
    import tensorflow_datasets as tfds

    from trainer.images.tfds_data import chosen_splits, image_and_label, prepared_builder, split_examples

    builder, size = prepared_builder(run), run.flags["image_size"]
    info = builder.info
    name, version = info.full_name.rsplit("/", 1)[0], str(info.version)
    class_names = info.features[image_and_label(info)[1]].names
    train, evaluation = chosen_splits(info, run.flags["train_split"], run.flags["evaluation_split"])
    training = _pictures(split_examples(builder, train), size, augment)
    return Data(
        training=training,
        evaluation=None if evaluation is None else _pictures(split_examples(builder, evaluation), size, None),
        name=f"{name}:{version}",
        description={
            "class_names": class_names,
            "image_size": list(size),
            "dataset": {
                "name": name,
                "version": version,
                "train_split": train,
                "evaluation_split": evaluation,
                "train_examples": training.count,
            },
            "frameworks": {"tensorflow_datasets": tfds.__version__},
        },
        unchanged={"--dataset": name, "--image_size": text_of(size)},
        weights=partial(starting_weights, run.flags["weights"], pretrained, run.environment),
    )


def _pictures(
    encoded: Examples, size: tuple[int, int], augment: Callable[[Any, Any], Any] | None
) -> Examples:
    """Pairs of an encoded image and a label as images of this size, uint8 until they are on the device, from 0 to 1 there."""
    from trainer.images.pixels import decoded_pixels, scaled_images

    return replace(
        encoded,
        decode=lambda pair: (decoded_pixels(pair[0], size), pair[1]),
        augment=augment and (lambda pair, seed: (augment(pair[0], seed), pair[1])),
        on_device=lambda batch: (scaled_images(batch[0]), batch[1]),
    )


def _image_signatures(run: TrainingRun, model: Any) -> dict[str, Any]:
    from trainer.images.pixels import serving_signatures

    return serving_signatures(model, run.flags["image_size"], run.data.description["class_names"])
