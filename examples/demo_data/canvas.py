"""What drawings are made of: smooth noise, blurs and blends on arrays of pixels."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Colour = tuple[int, int, int]
Field = NDArray[np.float32]  # [height, width], from 0 to 1
Picture = NDArray[np.float32]  # [height, width, 3], from 0 to 255


def tinted(side: int, colour: Colour, random: Generator) -> Picture:
    grain = random.normal(0, 5, (side, side, 1)).astype(np.float32)
    return np.asarray(np.asarray(colour, np.float32) + grain, np.float32)


def varied(colour: Colour, random: Generator, spread: int) -> Colour:
    red, green, blue = (int(np.clip(part + random.integers(-spread, spread + 1), 0, 255)) for part in colour)
    return red, green, blue


def noise(side: int, cells: int, random: Generator) -> Field:
    """Smooth noise of about `cells` bumps a side, stretched to the whole range."""
    coarse = Image.fromarray((random.random((cells, cells)) * 255).astype(np.uint8))
    fine = field_of(coarse.resize((side, side), Image.Resampling.BICUBIC))
    return np.asarray((fine - fine.min()) / max(float(np.ptp(fine)), 1e-6), np.float32)


def steep(field: Field, middle: float, slope: float) -> Field:
    return np.asarray(1 / (1 + np.exp(-slope * (field - middle))), np.float32)


def field_of(image: Image.Image) -> Field:
    return np.asarray(np.asarray(image, np.float32) / 255, np.float32)


def blurred(field: Field, radius: float) -> Field:
    image = Image.fromarray((np.clip(field, 0, 1) * 255).astype(np.uint8))
    return field_of(image.filter(ImageFilter.GaussianBlur(radius)))


def mix(below: Picture, above: Picture | Colour, share: Field) -> Picture:
    """`above` laid over `below`, as opaque as `share` says for each pixel."""
    weight = share[..., None]
    return np.asarray(below * (1 - weight) + np.asarray(above, np.float32) * weight, np.float32)
