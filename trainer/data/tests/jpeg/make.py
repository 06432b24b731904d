"""Makes the JPEG files of this folder, and `pixels.txt`: name, width, height and SHA-256 of the RGB pixels that
OpenCV decodes from each. The pictures are random, so nobody else has rights to them.

    python -m pip install opencv-python-headless==5.0.0.93 pillow numpy
    python make.py
"""
import hashlib
import io
import pathlib

import cv2
import numpy
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
SAMPLING = {name: getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{name}") for name in ("411", "420", "422", "440", "444")}
RANDOM = numpy.random.default_rng(20261123)


def picture(width, height):
    """Smooth colors with noise."""
    coarse = RANDOM.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=numpy.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(int)
    return numpy.clip(smooth + RANDOM.integers(-20, 20, smooth.shape), 0, 255).astype(numpy.uint8)


def write(name, data):
    (FOLDER / f"{name}.jpg").write_bytes(data)


def with_opencv(name, image, **options):
    flags = [value for key, given in options.items() for value in (getattr(cv2, f"IMWRITE_JPEG_{key}"), given)]
    data = cv2.imencode(".jpg", image, flags)[1].tobytes()
    write(name, data)
    return data


def with_pillow(name, image, mode="RGB", **options):
    buffer = io.BytesIO()
    Image.fromarray(image[:, :, ::-1]).convert(mode).save(buffer, "JPEG", **options)
    write(name, buffer.getvalue())


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
        exif = Image.Exif()
        exif[0x112] = orientation
        with_pillow(f"exif-{orientation}", picture(24, 13), exif=exif.tobytes())
    whole = with_opencv("whole", picture(64, 48), SAMPLING_FACTOR=SAMPLING["420"])
    write("without-end", whole[: len(whole) * 2 // 3])
    write("bytes-after-the-end", whole + b"something else")
    damaged = bytearray(whole)
    for place in RANDOM.integers(700, len(whole) - 2, 4):
        damaged[place] ^= 0x15
    write("damaged", bytes(damaged))

    lines = []
    for file in sorted(FOLDER.glob("*.jpg")):
        pixels = cv2.cvtColor(cv2.imread(str(file), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        lines.append(f"{file.name} {pixels.shape[1]} {pixels.shape[0]} {hashlib.sha256(pixels.tobytes()).hexdigest()}")
    (FOLDER / "pixels.txt").write_text("\n".join(lines) + "\n")


main()
