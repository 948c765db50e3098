"""Write a small substitute for a public data set, which TFDS reads like the real one.

    python examples/demo_dataset.py --data_dir DIR --dataset horses_or_humans

TFDS itself writes it with the data set's own builder: same features, version, class names and
splits. The photographs are replaced by drawings whose classes differ like the real ones, strongly
enough to be learned in a minute: leaves for cassava, figures for horses_or_humans. Scores on them
say nothing about the real data.

Each split is drawn separately: it depends on the seed and its own size, not on the other split.
The same arguments give the same images in the same order (the records around them are serialized
by protobuf, which does not promise the order of an example's fields). An existing data set is left unchanged.
"""

import argparse
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from demo_data.figures import figure
from demo_data.leaves import leaf
from numpy.random import Generator
from PIL import Image

JPEG_QUALITY = 88
MIN_SIDE_PX = 16
TRAIN = "train"


@dataclass(frozen=True, kw_only=True)
class Stand:
    """How to imitate one data set: `draw` takes a class name, a side in pixels and a random generator.

    Attributes:
        examples: default number of images in all splits together.
        size: default size of the images in pixels.
        is_fixed_size: the builder's features allow no other size.
        format: how the real data set's files are encoded, with these `options` of Pillow.
        named: whether the features hold the file's name.
    """

    parts: Mapping[str, float]
    examples: int
    size: int
    is_fixed_size: bool
    draw: Callable[[str, int, Generator], Image.Image]
    format: str
    options: Mapping[str, int]
    named: bool


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to write: `examples` in all splits together, drawn `size` pixels wide and high from `seed`.

    Attributes:
        train_examples: number in the train split, if not its share of `examples`.
        examples_per_file: in one file of records; None: a split is one file.
        label_noise: share of the train split's labels that are wrong, from 0 to 1.
    """

    examples: int
    size: int
    seed: int
    train_examples: int | None = None
    examples_per_file: int | None = None
    label_noise: float = 0.0


STANDS = {
    "cassava": Stand(
        parts={"train": 0.65, "validation": 0.15, "test": 0.20},
        examples=640,
        size=96,
        is_fixed_size=False,
        draw=leaf,
        format="JPEG",
        options={"quality": JPEG_QUALITY},
        named=True,
    ),
    "horses_or_humans": Stand(
        parts={"train": 0.75, "test": 0.25},
        examples=384,
        size=300,
        is_fixed_size=True,
        draw=figure,
        format="PNG",
        options={"compress_level": 1},
        named=False,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", type=Path, required=True, help="TFDS data directory to write into")
    parser.add_argument(
        "--dataset", choices=list(STANDS), default="cassava", help="which one to stand in for (%(default)s)"
    )
    parser.add_argument(
        "--examples", type=int, help="images in all splits together (640; 384 horses_or_humans)"
    )
    parser.add_argument(
        "--image_size", type=int, help="height and width in pixels (96; always 300 horses_or_humans)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn (%(default)s)")
    parser.add_argument(
        "--train_examples", type=int, help="images in the train split, whatever --examples gives it"
    )
    parser.add_argument(
        "--examples_per_file", type=int, help="images in each file of records (all of a split)"
    )
    parser.add_argument(
        "--label_noise",
        type=float,
        default=0.0,
        help="share of the train split's labels that are wrong, 0 to 1; its images stay what they are (%(default)s)",
    )
    parser.add_argument(
        "--mislabelled_dir",
        type=Path,
        help="write the same images there too: --label_noise is then of their labels, and those in --data_dir are right",
    )
    options = parser.parse_args()
    stand = STANDS[options.dataset]
    examples, size = options.examples or stand.examples, options.image_size or stand.size
    if examples < 15 or size < MIN_SIDE_PX:  # noqa: PLR2004 - three splits of five classes
        parser.error(f"--examples must be at least 15 and --image_size at least {MIN_SIDE_PX}")
    if stand.is_fixed_size and size != stand.size:
        parser.error(f"--image_size={size}: images of {options.dataset} are {stand.size} pixels, no others")
    if not 0 <= options.label_noise <= 1:
        parser.error(f"--label_noise={options.label_noise}: expected a share from 0 to 1")
    for name in ("train_examples", "examples_per_file"):
        count = getattr(options, name)
        if count is not None and count < 1:
            parser.error(f"--{name}={count}: expected at least 1")
    wanted = Wanted(
        examples=examples,
        size=size,
        seed=options.seed,
        train_examples=options.train_examples,
        examples_per_file=options.examples_per_file,
        label_noise=options.label_noise,
    )
    if options.mislabelled_dir is not None:
        write_dataset(options.mislabelled_dir, options.dataset, wanted)
        wanted = replace(wanted, label_noise=0.0)
    write_dataset(options.data_dir, options.dataset, wanted)


def write_dataset(data_dir: Path, name: str, wanted: Wanted) -> None:
    """Write the data set below `data_dir`, whole or not at all.

    TFDS writes into a folder beside the final one, which is then renamed: a run that
    ends halfway leaves nothing that looks like a data set.
    """
    # TensorFlow then loads Keras, which is not needed here, only when it is used: a third of the start.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import tensorflow_datasets as tfds  # PIL and numpy are enough to draw

    stand = STANDS[name]
    final = Path(tfds.builder(name, data_dir=data_dir).data_dir)
    if (final / "dataset_info.json").exists():
        print(f"{final} is there already.")  # noqa: T201
        return
    scratch = data_dir / f".{name}-incomplete"
    shutil.rmtree(scratch, ignore_errors=True)
    builder = tfds.builder(name, data_dir=scratch)
    Path(builder.data_dir).mkdir(parents=True)
    counts = counts_of(stand, wanted, classes=builder.info.features["label"].num_classes)
    per_file = wanted.examples_per_file or max(counts.values())
    writer = tfds.core.SequentialWriter(builder.info, max_examples_per_shard=per_file)
    writer.initialize_splits(list(stand.parts))
    labels = builder.info.features["label"].names
    for number, (split, count) in enumerate(counts.items()):
        random = np.random.default_rng([wanted.seed, number])
        order = [labels[index % len(labels)] for index in random.permutation(count)]
        examples = list(drawn(stand, split, order, wanted.size, random))
        if split == TRAIN:
            mislabel(examples, labels, wanted.label_noise, np.random.default_rng([wanted.seed, number, 1]))
        writer.add_examples({split: examples})
    writer.close_all()
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    Path(builder.data_dir).rename(final)
    shutil.rmtree(scratch)
    print(f"{final}: " + ", ".join(f"{count} {split}" for split, count in counts.items()))  # noqa: T201


def counts_of(stand: Stand, wanted: Wanted, *, classes: int) -> dict[str, int]:
    """Images by split; every class has one at least."""
    counts = {split: round(wanted.examples * part) for split, part in stand.parts.items()}
    if wanted.train_examples is not None:
        counts[TRAIN] = wanted.train_examples
    return {split: max(classes, count) for split, count in counts.items()}


def mislabel(
    examples: Sequence[dict[str, object]], labels: Sequence[str], share: float, random: Generator
) -> None:
    """Give `share` of the examples, taken at random, another class than the one that is drawn."""
    for index in random.permutation(len(examples))[: round(share * len(examples))]:
        others = [label for label in labels if label != examples[index]["label"]]
        examples[index]["label"] = others[random.integers(len(others))]


def drawn(
    stand: Stand, split: str, labels: Iterable[str], size: int, random: Generator
) -> Iterator[dict[str, object]]:
    """An example of each of `labels`, in the data set's form."""
    for number, label in enumerate(labels):
        content = io.BytesIO()
        stand.draw(label, size, random).save(content, stand.format, **stand.options)
        content.seek(0)
        name = {"image/filename": f"{split}-{label}-{number}.{stand.format.lower()}"} if stand.named else {}
        yield {"image": content, "label": label} | name


if __name__ == "__main__":
    main()
