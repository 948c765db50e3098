"""Drawings of horses and humans, side-on, in all colours and in front of the same scenery.

Neither colour nor place tells the classes apart: the figure does.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from demo_data.canvas import Colour, blurred, field_of, mix, noise, varied

Point = tuple[float, float]

COATS: tuple[Colour, ...] = ((112, 70, 40), (64, 44, 34), (160, 118, 76), (206, 200, 190), (84, 82, 84))
CLOTHES: tuple[Colour, ...] = (*COATS, (60, 84, 130), (150, 54, 50), (70, 110, 76), (196, 170, 80))
SKINS: tuple[Colour, ...] = ((232, 190, 160), (198, 150, 112), (140, 96, 68), (92, 62, 46))
DARK: Colour = (44, 34, 30)
HAIRS: tuple[Colour, ...] = (DARK, DARK, (160, 118, 76))
SKIES: tuple[Colour, ...] = ((150, 184, 214), (196, 200, 204), (222, 190, 160), (128, 140, 156))
GROUNDS: tuple[Colour, ...] = ((104, 124, 70), (164, 142, 104), (122, 104, 84), (146, 146, 140))
FAR = 0.72  # brightness of the limbs on the far side


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """A rounded line of changing thickness through `points`; radii and points in lengths of the figure."""

    points: Sequence[Point]
    radii: Sequence[float]
    colour: Colour


@dataclass(frozen=True, kw_only=True)
class Pose:
    """Where a figure stands: `side` pixels to its unit, turned by `angle` radians, mirrored or not."""

    side: float
    centre: Point
    angle: float
    is_mirrored: bool

    def placed(self, point: Point) -> Point:
        x, y = (-point[0] if self.is_mirrored else point[0]), point[1]
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        return (
            self.centre[0] + self.side * (x * cos - y * sin),
            self.centre[1] + self.side * (x * sin + y * cos),
        )


def figure(label: str, size: int, random: Generator) -> Image.Image:
    """One RGB drawing, `size` x `size`, of what `label` names."""
    half = Image.fromarray(_scenery(size // 2, random)).resize((size, size), Image.Resampling.BILINEAR)
    strokes = list(FIGURES[label](random))
    pose = Pose(
        side=size * random.uniform(0.42, 0.78),
        centre=(size * random.uniform(0.36, 0.64), size * random.uniform(0.42, 0.58)),
        angle=random.uniform(-0.25, 0.25),
        is_mirrored=bool(random.integers(2)),
    )
    colours, mask = Image.new("RGB", (size, size)), Image.new("L", (size, size))
    paint, cut = ImageDraw.Draw(colours), ImageDraw.Draw(mask)
    for stroke in strokes:
        _draw(paint, stroke, pose, stroke.colour)
        _draw(cut, stroke, pose, 255)
    shade = 0.75 + 0.5 * noise(size, 6, random)
    lit = np.asarray(colours, np.float32) * shade[..., None]
    edge = blurred(field_of(mask), 0.8)  # soft, as if the pixels had been smaller
    whole = mix(np.asarray(half, np.float32), np.asarray(lit, np.float32), edge)
    return Image.fromarray(np.clip(whole, 0, 255).astype(np.uint8))


def _draw(draw: ImageDraw.ImageDraw, stroke: Stroke, pose: Pose, fill: Colour | int) -> None:
    discs = [
        (*pose.placed(point), radius * pose.side)
        for point, radius in zip(stroke.points, stroke.radii, strict=True)
    ]
    for x, y, radius in discs:
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
    for (x, y, radius), (to_x, to_y, to_radius) in pairwise(discs):
        across = math.atan2(to_y - y, to_x - x) + math.pi / 2
        dx, dy = math.cos(across), math.sin(across)
        draw.polygon(
            [
                (x + dx * radius, y + dy * radius),
                (to_x + dx * to_radius, to_y + dy * to_radius),
                (to_x - dx * to_radius, to_y - dy * to_radius),
                (x - dx * radius, y - dy * radius),
            ],
            fill=fill,
        )


def _horse(random: Generator) -> Iterator[Stroke]:
    coat = varied(COATS[random.integers(len(COATS))], random, 14)
    hair = varied(DARK if random.random() < 0.7 else coat, random, 10)  # noqa: PLR2004 - most manes are dark
    far = _darker(coat)
    for x, colour in ((-0.30, far), (0.24, far)):
        yield from _horse_leg((x, 0.10), colour, random)
    swing = random.uniform(-0.08, 0.12)
    yield Stroke(
        points=[(-0.46, -0.06), (-0.58 - swing, 0.06), (-0.57 - swing, 0.32)],
        radii=[0.03, 0.045, 0.015],
        colour=hair,
    )
    yield Stroke(points=[(-0.34, 0), (0, 0.03), (0.28, 0)], radii=[0.165, 0.145, 0.155], colour=coat)
    for x, colour in ((-0.40, coat), (0.34, coat)):
        yield from _horse_leg((x, 0.08), colour, random)
    nod = random.uniform(-0.10, 0.26)  # grazing to alert
    poll = (0.56, -0.36 + nod)
    yield Stroke(points=[(0.32, -0.06), poll], radii=[0.13, 0.07], colour=coat)
    yield Stroke(
        points=[(0.24, -0.15), (0.40, -0.29 + nod / 2), (0.51, -0.43 + nod)],
        radii=[0.03, 0.05, 0.03],
        colour=hair,
    )
    yield Stroke(points=[poll, (0.75, -0.22 + nod)], radii=[0.075, 0.045], colour=coat)
    yield Stroke(points=[(0.54, -0.40 + nod), (0.56, -0.49 + nod)], radii=[0.03, 0.008], colour=coat)


def _horse_leg(hip: Point, colour: Colour, random: Generator) -> Iterator[Stroke]:
    upper = random.uniform(-0.45, 0.45)
    knee = _from(hip, upper, 0.24)
    hoof = _from(knee, upper - random.uniform(0, 0.5), 0.24)
    yield Stroke(points=[hip, knee, hoof], radii=[0.085, 0.042, 0.03], colour=colour)
    yield Stroke(points=[hoof, (hoof[0] + 0.02, hoof[1] + 0.02)], radii=[0.034, 0.036], colour=DARK)


def _human(random: Generator) -> Iterator[Stroke]:
    skin = varied(SKINS[random.integers(len(SKINS))], random, 10)
    shirt, trousers = (varied(CLOTHES[random.integers(len(CLOTHES))], random, 14) for _ in range(2))
    sleeves = skin if random.random() < 0.4 else shirt  # noqa: PLR2004 - fewer than half are bare
    lean = random.uniform(-0.06, 0.06)
    shoulders, hips = (lean, -0.24), (0.0, 0.06)
    yield from _arm((lean - 0.07, -0.24), _darker(sleeves), _darker(skin), random)
    yield from _leg((-0.04, 0.08), _darker(trousers), random)
    yield from _leg((0.04, 0.08), trousers, random)
    yield Stroke(points=[shoulders, hips], radii=[0.105, 0.085], colour=shirt)
    yield Stroke(points=[shoulders, (lean, -0.34)], radii=[0.04, 0.035], colour=skin)
    head = (lean * 1.6, -0.42)
    yield Stroke(
        points=[(head[0] - 0.015, head[1] - 0.03), (head[0] - 0.03, head[1] + 0.03)],
        radii=[0.085, 0.06],
        colour=varied(HAIRS[random.integers(len(HAIRS))], random, 12),
    )
    yield Stroke(points=[(head[0] + 0.02, head[1] + 0.01)], radii=[0.068], colour=skin)
    yield from _arm((lean + 0.07, -0.24), sleeves, skin, random)


def _arm(shoulder: Point, sleeve: Colour, skin: Colour, random: Generator) -> Iterator[Stroke]:
    upper = random.uniform(-1.3, 1.3)
    elbow = _from(shoulder, upper, 0.17)
    hand = _from(elbow, upper + random.uniform(-0.2, 1.2), 0.16)
    yield Stroke(points=[shoulder, elbow, hand], radii=[0.045, 0.036, 0.028], colour=sleeve)
    yield Stroke(points=[hand], radii=[0.034], colour=skin)


def _leg(hip: Point, trousers: Colour, random: Generator) -> Iterator[Stroke]:
    upper = random.uniform(-0.6, 0.6)
    knee = _from(hip, upper, 0.23)
    foot = _from(knee, upper - random.uniform(0, 0.6), 0.24)
    yield Stroke(points=[hip, knee, foot], radii=[0.075, 0.052, 0.036], colour=trousers)
    yield Stroke(points=[foot, (foot[0] + 0.07, foot[1] + 0.015)], radii=[0.034, 0.026], colour=DARK)


# The classes of horses_or_humans by their TFDS names.
FIGURES: dict[str, Callable[[Generator], Iterator[Stroke]]] = {"horses": _horse, "humans": _human}


def _from(start: Point, angle: float, length: float) -> Point:
    """`length` away from `start`, `angle` radians forward of straight down."""
    return start[0] + length * math.sin(angle), start[1] + length * math.cos(angle)


def _darker(colour: Colour) -> Colour:
    red, green, blue = (int(part * FAR) for part in colour)
    return red, green, blue


def _scenery(size: int, random: Generator) -> NDArray[np.uint8]:
    """Sky above ground, out of focus, with bushes and posts; it says nothing about the class."""
    sky, ground = (varied(kinds[random.integers(len(kinds))], random, 16) for kinds in (SKIES, GROUNDS))
    horizon = size * random.uniform(0.35, 0.75)
    rows = np.linspace(0, size, size, dtype=np.float32)[:, None]
    below = np.broadcast_to(1 / (1 + np.exp(-(rows - horizon) / (size / 60))), (size, size)).astype(
        np.float32
    )
    whole = mix(np.broadcast_to(np.asarray(sky, np.float32), (size, size, 3)), ground, below)
    things = Image.new("L", (size, size))
    draw = ImageDraw.Draw(things)
    for _ in range(random.integers(2, 7)):
        x, width = random.uniform(0, size), size * random.uniform(0.01, 0.10)
        top = horizon - size * random.uniform(0.02, 0.35)
        shape = draw.ellipse if random.random() < 0.5 else draw.rectangle  # noqa: PLR2004 - one of two
        shape((x - width, top, x + width, horizon + size * random.uniform(0.02, 0.2)), fill=255)
    thing = varied(CLOTHES[random.integers(len(CLOTHES))], random, 20)
    whole = mix(whole, thing, 0.9 * blurred(field_of(things), size / 120))
    light = random.uniform(0.7, 1.2) * (0.8 + 0.4 * noise(size, 5, random))
    grain = random.normal(0, random.uniform(2, 8), (size, size, 1))
    return np.clip(whole * light[..., None] + grain, 0, 255).astype(np.uint8)
