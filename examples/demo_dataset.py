"""A small generated data set that `tfds.load("cassava", data_dir=DIR)` reads as if it were the real one.

    python examples/demo_dataset.py --data_dir DIR

It is written by TFDS itself with cassava's own builder: same features, version, class names and
splits. The photographs are replaced by drawings of palmate leaves whose five classes show what the
real ones do, strongly enough to be learned in a minute. Scores on it say nothing about cassava.

The same arguments give the same images in the same order (the records around them are serialized
by protobuf, which does not promise the order of an example's fields). A data set that is there already is left alone.
"""

import argparse
import io
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Colour = tuple[int, int, int]
Field = NDArray[np.float32]  # [height, width], from 0 to 1
Picture = NDArray[np.float32]  # [height, width, 3], from 0 to 255

DATASET = "cassava"
PARTS = {"train": 0.65, "validation": 0.15, "test": 0.20}
JPEG_QUALITY = 88
OVERSAMPLING = 2  # drawn larger, then scaled down: smooth edges

GREEN: Colour = (52, 118, 46)
MIDRIB: Colour = (128, 172, 96)
YELLOW: Colour = (226, 206, 62)
PALE: Colour = (222, 226, 190)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", type=Path, required=True, help="TFDS data directory to write into")
    parser.add_argument(
        "--examples", type=int, default=640, help="images in all splits together (%(default)s)"
    )
    parser.add_argument("--image_size", type=int, default=96, help="height and width in pixels (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn (%(default)s)")
    options = parser.parse_args()
    if options.examples < 15 or options.image_size < 16:  # noqa: PLR2004 - three splits of five classes
        parser.error("--examples must be at least 15 and --image_size at least 16")
    write_dataset(options.data_dir, examples=options.examples, size=options.image_size, seed=options.seed)


def write_dataset(data_dir: Path, *, examples: int, size: int, seed: int) -> None:
    """Write the data set below `data_dir`, whole or not at all.

    TFDS writes into a folder beside the final one, which is then renamed: a run that
    ends halfway leaves nothing that looks like a data set.
    """
    import tensorflow_datasets as tfds  # PIL and numpy are enough to draw

    final = Path(tfds.builder(DATASET, data_dir=data_dir).data_dir)
    if (final / "dataset_info.json").exists():
        print(f"{final} is there already.")  # noqa: T201
        return
    scratch = data_dir / f".{DATASET}-incomplete"
    shutil.rmtree(scratch, ignore_errors=True)
    builder = tfds.builder(DATASET, data_dir=scratch)
    Path(builder.data_dir).mkdir(parents=True)
    writer = tfds.core.SequentialWriter(builder.info, max_examples_per_shard=examples)
    writer.initialize_splits(list(PARTS))
    labels = builder.info.features["label"].names
    counts = {split: max(len(labels), round(examples * part)) for split, part in PARTS.items()}
    for number, (split, count) in enumerate(counts.items()):
        writer.add_examples(
            {split: list(drawn(split, count, labels, size, np.random.default_rng([seed, number])))}
        )
    writer.close_all()
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    Path(builder.data_dir).rename(final)
    shutil.rmtree(scratch)
    print(f"{final}: " + ", ".join(f"{count} {split}" for split, count in counts.items()))  # noqa: T201


def drawn(
    split: str, count: int, labels: list[str], size: int, random: Generator
) -> Iterator[dict[str, object]]:
    """`count` examples in cassava's form, every class equally often, in random order."""
    for index in random.permutation(count):
        label = labels[index % len(labels)]
        picture = leaf(label, size, random)
        content = io.BytesIO()
        picture.save(content, "JPEG", quality=JPEG_QUALITY)
        content.seek(0)
        yield {"image": content, "image/filename": f"{split}-{label}-{index}.jpg", "label": label}


def leaf(label: str, size: int, random: Generator) -> Image.Image:
    """One RGB photograph-like drawing, `size` x `size`, of a leaf in the condition that `label` names."""
    side = size * OVERSAMPLING
    mask, ribs = _palmate(side, random)
    surface = _tinted(side, _varied(GREEN, random, 10), random)
    surface = SYMPTOMS[label](surface, ribs, random)
    shaded = surface * (0.82 + 0.36 * _noise(side, 5, random))[..., None]
    ground = _ground(side, random)
    shadow = _blurred(np.roll(mask, (side // 28, side // 28), axis=(0, 1)), side / 30)
    ground *= (1 - 0.55 * shadow)[..., None]
    whole = _mix(ground, shaded, mask)
    photo = Image.fromarray(np.clip(whole, 0, 255).astype(np.uint8))
    return photo.resize((size, size), Image.Resampling.LANCZOS)


def _palmate(side: int, random: Generator) -> tuple[Field, Field]:
    """The leaf's outline, filled, and its veins: lobes around the end of a stalk."""
    outline, veins = Image.new("L", (side, side)), Image.new("L", (side, side))
    fill, line = ImageDraw.Draw(outline), ImageDraw.Draw(veins)
    centre = side * (0.5 + random.uniform(-0.05, 0.05)), side * (0.60 + random.uniform(-0.04, 0.04))
    lobes, turn = int(random.choice([5, 7])), random.uniform(-0.5, 0.5)
    reach = side * random.uniform(0.52, 0.60)
    for number in range(lobes):
        share = number / (lobes - 1) - 0.5  # from -0.5 to 0.5
        angle = turn - math.pi / 2 + share * 4.1
        length = reach * (1 - 0.75 * abs(share)) * random.uniform(0.94, 1.06)
        width = reach * random.uniform(0.17, 0.21)
        lobe = Lobe(root=centre, angle=angle, length=length, width=width)
        fill.polygon(lobe.outline(), fill=255)
        lobe.draw_veins(line, side)
    stalk = Lobe(root=centre, angle=turn + math.pi / 2, length=reach * 0.6, width=0).point(1)
    fill.line([centre, stalk], fill=255, width=max(2, side // 48))
    return _field(outline), _field(veins)


@dataclass(frozen=True, kw_only=True)
class Lobe:
    """One of the leaf's fingers; lengths in pixels, the angle in radians clockwise from the right."""

    root: tuple[float, float]
    angle: float
    length: float
    width: float

    def point(self, along: float, direction: float = 0, away: float = 0) -> tuple[float, float]:
        """`along` of the way to the tip, from 0 to 1, then `away` pixels in `direction`."""
        return (
            self.root[0] + self.length * along * math.cos(self.angle) + away * math.cos(direction),
            self.root[1] + self.length * along * math.sin(self.angle) + away * math.sin(direction),
        )

    def outline(self) -> list[tuple[float, float]]:
        """Pointed at both ends, widest beyond the middle."""
        along = np.linspace(0, 1, 18)
        half = self.width * (np.sin(np.pi * along**1.25) ** 0.8 + 0.12 * (1 - along))
        left, right = self.angle - math.pi / 2, self.angle + math.pi / 2
        edges = list(zip(along.tolist(), half.tolist(), strict=True))
        return [self.point(a, left, w) for a, w in edges] + [
            self.point(a, right, w) for a, w in reversed(edges)
        ]

    def draw_veins(self, line: ImageDraw.ImageDraw, side: int) -> None:
        line.line([self.root, self.point(0.96)], fill=255, width=max(2, side // 80))
        for along in (0.2, 0.35, 0.5, 0.65, 0.8):
            for turn in (-0.8, 0.8):
                tip = self.point(along, self.angle + turn, self.width * 0.95 * math.sin(math.pi * along))
                line.line([self.point(along), tip], fill=150, width=max(1, side // 160))


def _healthy(surface: Picture, ribs: Field, _: Generator) -> Picture:
    return _mix(surface, MIDRIB, 0.55 * ribs)


def _mosaic(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Mosaic disease: large sharp yellow patches between islands of green."""
    side = len(ribs)
    patches = _steep(_noise(side, 7, random), random.uniform(0.36, 0.46), 14)
    return _mix(_mix(surface, _varied(YELLOW, random, 14), 0.85 * patches), MIDRIB, 0.3 * ribs)


def _brown_streak(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Brown streak disease: yellow feathering along the veins, which themselves turn brown."""
    side = len(ribs)
    feather = np.clip(_blurred(ribs, side / 24) * 4.5, 0, 1) * (0.65 + 0.35 * _noise(side, 9, random))
    yellowed = _mix(surface, _varied((214, 168, 72), random, 12), np.asarray(0.9 * feather, np.float32))
    streaks = np.clip(_blurred(ribs, side / 110) * 2.2, 0, 1)
    return _mix(yellowed, _varied((112, 62, 30), random, 10), np.asarray(0.9 * streaks, np.float32))


def _blight(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Bacterial blight: a wilting, olive leaf with dark dead spots, many of them run together."""
    side = len(ribs)
    wilted = _mix(surface, (134, 112, 58), 0.55 + 0.25 * _noise(side, 5, random))
    spots = _spots(side, int(random.integers(34, 50)), (0.03, 0.075), random)
    rim = np.clip(_blurred(spots, side / 60) * 2.0, 0, 1)
    rimmed = _mix(_mix(wilted, MIDRIB, 0.3 * ribs), (186, 160, 62), 0.5 * rim)
    return _mix(rimmed, _varied((58, 38, 26), random, 8), 0.97 * _blurred(spots, side / 200))


def _green_mite(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Green mite: the whole leaf dusted with fine pale specks, its green washed out."""
    side = len(ribs)
    specks = _steep(_noise(side, 46, random), 0.50, 16)
    washed = _mix(surface, (142, 164, 112), 0.45 + 0.2 * _noise(side, 6, random))
    return _mix(_mix(washed, PALE, 0.85 * specks), MIDRIB, 0.3 * ribs)


# The classes of cassava by their TFDS names.
SYMPTOMS: dict[str, Callable[[Picture, Field, Generator], Picture]] = {
    "cbb": _blight,
    "cbsd": _brown_streak,
    "cgm": _green_mite,
    "cmd": _mosaic,
    "healthy": _healthy,
}


def _ground(side: int, random: Generator) -> Picture:
    """Soil or grass out of focus; it says nothing about the class."""
    soil = random.random() < 0.5  # noqa: PLR2004 - one of two
    base = _varied((120, 104, 88) if soil else (104, 110, 84), random, 12)
    other = _varied((86, 76, 66) if soil else (74, 82, 60), random, 10)
    cover = _blurred(_noise(side, 6, random), side / 14)
    return _mix(_tinted(side, base, random), other, cover) * np.float32(random.uniform(0.8, 1.15))


def _tinted(side: int, colour: Colour, random: Generator) -> Picture:
    grain = random.normal(0, 5, (side, side, 1)).astype(np.float32)
    return np.asarray(np.asarray(colour, np.float32) + grain, np.float32)


def _varied(colour: Colour, random: Generator, spread: int) -> Colour:
    red, green, blue = (int(np.clip(part + random.integers(-spread, spread + 1), 0, 255)) for part in colour)
    return red, green, blue


def _noise(side: int, cells: int, random: Generator) -> Field:
    """Smooth noise of about `cells` bumps a side, stretched to the whole range."""
    coarse = Image.fromarray((random.random((cells, cells)) * 255).astype(np.uint8))
    fine = _field(coarse.resize((side, side), Image.Resampling.BICUBIC))
    return np.asarray((fine - fine.min()) / max(float(np.ptp(fine)), 1e-6), np.float32)


def _spots(side: int, count: int, radius: tuple[float, float], random: Generator) -> Field:
    image = Image.new("L", (side, side))
    draw = ImageDraw.Draw(image)
    for x, y, size in zip(
        *random.uniform(0.08, 0.92, (2, count)) * side, random.uniform(*radius, count), strict=True
    ):
        corners = [
            (x + side * size * stretch * math.cos(angle), y + side * size * stretch * math.sin(angle))
            for angle, stretch in zip(
                np.linspace(0, math.tau, 7)[:-1], random.uniform(0.7, 1.2, 6), strict=True
            )
        ]
        draw.polygon(corners, fill=255)
    return _field(image)


def _steep(field: Field, middle: float, slope: float) -> Field:
    return np.asarray(1 / (1 + np.exp(-slope * (field - middle))), np.float32)


def _field(image: Image.Image) -> Field:
    return np.asarray(np.asarray(image, np.float32) / 255, np.float32)


def _blurred(field: Field, radius: float) -> Field:
    image = Image.fromarray((np.clip(field, 0, 1) * 255).astype(np.uint8))
    return _field(image.filter(ImageFilter.GaussianBlur(radius)))


def _mix(below: Picture, above: Picture | Colour, share: Field) -> Picture:
    """`above` laid over `below`, as opaque as `share` says for each pixel."""
    weight = share[..., None]
    return np.asarray(below * (1 - weight) + np.asarray(above, np.float32) * weight, np.float32)


if __name__ == "__main__":
    main()
