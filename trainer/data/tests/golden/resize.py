"""Records what OpenCV's resize makes of noise, for tests/resize.rs.

    python -m pip install opencv-python-headless==5.0.0.93 numpy
    python resize.py > resize.txt

Each line has the filter, the width and height before and after, and the SHA-256 of the resized pixels. Noise comes from
a generator that the test repeats; the number of the line is its seed. In every fourth image, bytes are only 0 and 255.
"""
import hashlib
import random

import cv2
import numpy as np


def noise(seed, width, height):
    """Bytes of a linear congruential generator, from its upper bits."""
    count, values, state = width * height * 3, [], seed
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append(state >> 24)
    pixels = np.array(values, np.uint8).reshape(height, width, 3)
    return np.where(pixels < 128, 0, 255).astype(np.uint8) if seed % 4 == 3 else pixels


def cases():
    draw = random.Random(0)
    # What loaders do: photos to 640 and 320 pixels, and small images to larger ones.
    yield from [("linear", 1280, 720, 640, 360), ("linear", 500, 375, 640, 480), ("linear", 640, 480, 320, 240),
                ("linear", 333, 500, 427, 640), ("area", 1280, 720, 640, 360), ("area", 640, 427, 320, 214),
                ("area", 960, 540, 320, 180), ("area", 612, 612, 320, 320)]
    for width, height in [(1, 1), (1, 9), (9, 1), (2, 2), (3, 2)]:
        yield from [("linear", width, height, 17, 5), ("linear", 17, 5, width, height), ("area", 18, 9, width, height)]
    for _ in range(200):
        yield "linear", *(draw.randint(1, 90) for _ in range(4))
    for _ in range(150):
        to = [draw.randint(1, 50) for _ in range(2)]
        yield "area", *(side + draw.randint(0, 60) for side in to), *to
    # Whole factors, the same and different along the two axes, for which OpenCV has code of its own.
    for across in range(1, 9):
        for down in range(1, 9):
            to = [draw.randint(1, 12) for _ in range(2)]
            yield "area", to[0] * across, to[1] * down, *to


FILTERS = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}
for seed, (name, *sizes) in enumerate(cases()):
    width, height, to_width, to_height = sizes
    resized = cv2.resize(noise(seed, width, height), (to_width, to_height), interpolation=FILTERS[name])
    assert resized.shape == (to_height, to_width, 3)
    print(name, *sizes, hashlib.sha256(resized.tobytes()).hexdigest())
