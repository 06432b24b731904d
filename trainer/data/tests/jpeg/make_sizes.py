"""Makes `sizes.zip`, JPEG files of all sides from 1 to 65 pixels in all samplings, and `sizes.txt`: name, width, height and
SHA-256 of the RGB pixels that OpenCV decodes from each. Their quality is random; every other one is progressive, every
third has restart markers, and every eighth is cut off in compressed data, of which OpenCV decodes what is there. Those are
not progressive: of such files OpenCV smooths what later scans would have refined, which our decoder does not.

    python -m pip install opencv-python-headless==5.0.0.93 pillow numpy
    python make_sizes.py
"""
import functools
import pathlib
import tempfile
import zipfile

import cv2
import numpy

import pictures
from pictures import FOLDER, SAMPLING, with_orientation, with_pillow

RANDOM = numpy.random.default_rng(20261125)
picture = functools.partial(pictures.picture, RANDOM)


def encoded(image, number, sampling=None):
    flags = [cv2.IMWRITE_JPEG_QUALITY, int(RANDOM.integers(1, 101)), cv2.IMWRITE_JPEG_PROGRESSIVE, number % 2]
    if number % 3 == 0:
        flags += [cv2.IMWRITE_JPEG_RST_INTERVAL, int(RANDOM.integers(1, 4))]
    if sampling:
        flags += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SAMPLING[sampling]]
    return cv2.imencode(".jpg", image, flags)[1].tobytes()


def compressed(data):
    """The places in the compressed data of all scans, outside of the segments between them."""
    places, at = [], 2
    while at < len(data) - 2:
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        is_scan, at = data[at + 1] == 0xDA, at + 2 + length
        begin = at
        while is_scan and (data[at] != 0xFF or data[at + 1] == 0 or 0xD0 <= data[at + 1] <= 0xD7):
            at += 1
        places += range(begin + 1, at)
    return places


def files():
    number = 0
    for side in range(1, 66):
        for sampling in SAMPLING:
            width, height = (side, 66 - side) if number % 2 else (side, int(RANDOM.integers(1, 66)))
            data = encoded(picture(width, height), number, sampling)
            if number % 8 == 6:
                data = data[: int(RANDOM.choice(compressed(data)))]
            yield f"{number:03}-{sampling}", data
            number += 1
    for side in range(1, 66, 2):
        yield f"{number:03}-gray", encoded(cv2.cvtColor(picture(side, 66 - side), cv2.COLOR_BGR2GRAY), number)
        yield f"{number:03}-cmyk", with_pillow(picture(66 - side, side), "CMYK", quality=int(RANDOM.integers(1, 96)))
        yield f"{number:03}-exif", with_orientation(picture(side, 41), number % 8 + 1, subsampling=number % 3)
        number += 1


def main():
    lines = []
    packed = zipfile.ZipFile(FOLDER / "sizes.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9)
    with tempfile.TemporaryDirectory() as folder, packed as archive:
        for name, data in files():
            # From memory, OpenCV would refuse files that are cut off.
            path = pathlib.Path(folder, "file.jpg")
            path.write_bytes(data)
            line = pictures.decoded(f"{name}.jpg", path)
            if line is None:
                continue
            archive.writestr(zipfile.ZipInfo(f"{name}.jpg"), data, zipfile.ZIP_DEFLATED)
            lines.append(line)
    (FOLDER / "sizes.txt").write_text("\n".join(lines) + "\n")


main()
