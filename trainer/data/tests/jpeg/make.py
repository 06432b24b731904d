"""Makes the JPEG files of this folder, and `pixels.txt`: name, width, height and SHA-256 of the RGB pixels that
OpenCV decodes from each. The pictures are random, so nobody else has rights to them.

    python -m pip install opencv-python-headless==5.0.0.93 pillow numpy
    python make.py
"""
import functools

import cv2
import numpy

import pictures
from pictures import FOLDER, SAMPLING

RANDOM = numpy.random.default_rng(20261123)
picture = functools.partial(pictures.picture, RANDOM)


def write(name, data):
    (FOLDER / f"{name}.jpg").write_bytes(data)


def with_opencv(name, image, **options):
    flags = [value for key, given in options.items() for value in (getattr(cv2, f"IMWRITE_JPEG_{key}"), given)]
    data = cv2.imencode(".jpg", image, flags)[1].tobytes()
    write(name, data)
    return data


def with_pillow(name, image, **options):
    write(name, pictures.with_pillow(image, **options))


def main():
    for old in FOLDER.glob("*.jpg"):
        old.unlink()
    for sampling, flag in SAMPLING.items():
        for width, height in ((61, 47), (33, 18), (16, 16), (1, 7)):
            image = picture(width, height)
            for kind, progressive in (("baseline", 0), ("progressive", 1)):
                with_opencv(f"{sampling}-{width}x{height}-{kind}", image, SAMPLING_FACTOR=flag, PROGRESSIVE=progressive)
        with_opencv(f"{sampling}-low-quality", picture(47, 31), SAMPLING_FACTOR=flag, QUALITY=15)
        with_opencv(f"{sampling}-restarts", picture(47, 31), SAMPLING_FACTOR=flag, RST_INTERVAL=2)
    with_opencv("one-pixel", picture(1, 1))
    with_opencv("gray", cv2.cvtColor(picture(45, 35), cv2.COLOR_BGR2GRAY))
    with_opencv("gray-progressive", cv2.cvtColor(picture(45, 35), cv2.COLOR_BGR2GRAY), PROGRESSIVE=1)
    with_pillow("cmyk", picture(45, 35), mode="CMYK")
    with_pillow("rgb", picture(45, 35), keep_rgb=True)
    for orientation in range(1, 9):
        write(f"exif-{orientation}", pictures.with_orientation(picture(24, 13), orientation))
    whole = with_opencv("whole", picture(64, 48), SAMPLING_FACTOR=SAMPLING["420"])
    write("without-end", whole[: len(whole) * 2 // 3])
    write("bytes-after-the-end", whole + b"something else")
    damaged = bytearray(whole)
    for place in RANDOM.integers(700, len(whole) - 2, 4):
        damaged[place] ^= 0x15
    write("damaged", bytes(damaged))

    lines = [pictures.decoded(file.name, file) for file in sorted(FOLDER.glob("*.jpg"))]
    (FOLDER / "pixels.txt").write_text("\n".join(lines) + "\n")


main()
