"""Drawings of palmate leaves in the five conditions that cassava's classes name."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw

from demo_data.canvas import Colour, Field, Picture, blurred, field_of, mix, noise, steep, tinted, varied

OVERSAMPLING = 2  # drawn larger, then scaled down: smooth edges

GREEN: Colour = (52, 118, 46)
MIDRIB: Colour = (128, 172, 96)
YELLOW: Colour = (226, 206, 62)
PALE: Colour = (222, 226, 190)


def leaf(label: str, size: int, random: Generator) -> Image.Image:
    """One RGB photograph-like drawing, `size` x `size`, of a leaf in the condition that `label` names."""
    side = size * OVERSAMPLING
    mask, ribs = _palmate(side, random)
    surface = tinted(side, varied(GREEN, random, 10), random)
    surface = SYMPTOMS[label](surface, ribs, random)
    shaded = surface * (0.82 + 0.36 * noise(side, 5, random))[..., None]
    ground = _ground(side, random)
    shadow = blurred(np.roll(mask, (side // 28, side // 28), axis=(0, 1)), side / 30)
    ground *= (1 - 0.55 * shadow)[..., None]
    whole = mix(ground, shaded, mask)
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
    return field_of(outline), field_of(veins)


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
    return mix(surface, MIDRIB, 0.55 * ribs)


def _mosaic(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Mosaic disease: large sharp yellow patches between islands of green."""
    side = len(ribs)
    patches = steep(noise(side, 7, random), random.uniform(0.36, 0.46), 14)
    return mix(mix(surface, varied(YELLOW, random, 14), 0.85 * patches), MIDRIB, 0.3 * ribs)


def _brown_streak(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Brown streak disease: yellow feathering along the veins, which themselves turn brown."""
    side = len(ribs)
    feather = np.clip(blurred(ribs, side / 24) * 4.5, 0, 1) * (0.65 + 0.35 * noise(side, 9, random))
    yellowed = mix(surface, varied((214, 168, 72), random, 12), np.asarray(0.9 * feather, np.float32))
    streaks = np.clip(blurred(ribs, side / 110) * 2.2, 0, 1)
    return mix(yellowed, varied((112, 62, 30), random, 10), np.asarray(0.9 * streaks, np.float32))


def _blight(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Bacterial blight: a wilting, olive leaf with dark dead spots, many of them run together."""
    side = len(ribs)
    wilted = mix(surface, (134, 112, 58), 0.55 + 0.25 * noise(side, 5, random))
    spots = _spots(side, int(random.integers(34, 50)), (0.03, 0.075), random)
    rim = np.clip(blurred(spots, side / 60) * 2.0, 0, 1)
    rimmed = mix(mix(wilted, MIDRIB, 0.3 * ribs), (186, 160, 62), 0.5 * rim)
    return mix(rimmed, varied((58, 38, 26), random, 8), 0.97 * blurred(spots, side / 200))


def _green_mite(surface: Picture, ribs: Field, random: Generator) -> Picture:
    """Green mite: the whole leaf dusted with fine pale specks, its green washed out."""
    side = len(ribs)
    specks = steep(noise(side, 46, random), 0.50, 16)
    washed = mix(surface, (142, 164, 112), 0.45 + 0.2 * noise(side, 6, random))
    return mix(mix(washed, PALE, 0.85 * specks), MIDRIB, 0.3 * ribs)


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
    base = varied((120, 104, 88) if soil else (104, 110, 84), random, 12)
    other = varied((86, 76, 66) if soil else (74, 82, 60), random, 10)
    cover = blurred(noise(side, 6, random), side / 14)
    return mix(tinted(side, base, random), other, cover) * np.float32(random.uniform(0.8, 1.15))


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
    return field_of(image)
