"""The colours stay apart for eyes that see fewer of them, and stand out from the page."""

import itertools

import numpy as np
import pytest

from sgmatrix.present.figures.palette import (
    COLOURS,
    DARK,
    DARK_PAGE,
    LIGHT,
    LIGHT_PAGE,
    MARKER_PATHS,
    MARKERS,
    css_variables,
)

# Machado, Oliveira, Fernandes 2009, severity 1.0, for linear RGB
EYES = {
    "all": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Ottosson 2020, https://bottosson.github.io/posts/oklab/
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(colour):
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def seen(colour, eyes):
    return TO_LAB @ np.cbrt(TO_LMS @ np.clip(np.array(EYES[eyes]) @ linear(colour), 0, 1))


def contrast(one, other):
    lights = sorted(linear(colour) @ [0.2126, 0.7152, 0.0722] + 0.05 for colour in (one, other))
    return lights[1] / lights[0]


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_two_colours_are_never_taken_for_one(scheme, eyes):
    apart = [
        np.linalg.norm(seen(one, eyes) - seen(other, eyes))
        for one, other in itertools.combinations(scheme, 2)
    ]

    assert min(apart) > 0.12


@pytest.mark.parametrize(("scheme", "page"), [(LIGHT, LIGHT_PAGE), (DARK, DARK_PAGE)])
def test_each_stands_out_from_the_page(scheme, page):
    assert min(contrast(colour, page) for colour in scheme) > 3


def test_a_colour_has_a_shape_of_its_own_too():
    assert len(COLOURS) == len(set(MARKERS)) == len(LIGHT) == len(DARK) == 7
    assert set(MARKER_PATHS) == set(MARKERS)
    assert css_variables(("#010203", "#040506")) == "--c1: #010203; --c2: #040506;"
