"""What `make.py` and `make_sizes.py` share: random pictures, the samplings of JPEG, and the line about what OpenCV decodes."""
import hashlib
import io
import pathlib

import cv2
import numpy
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
SAMPLING = {name: getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{name}") for name in ("411", "420", "422", "440", "444")}


def picture(random, width, height):
    """Smooth colors with noise."""
    coarse = random.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=numpy.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(int)
    return numpy.clip(smooth + random.integers(-20, 20, smooth.shape), 0, 255).astype(numpy.uint8)


def with_pillow(image, mode="RGB", **options):
    """A JPEG file of Pillow, which has modes and options that OpenCV lacks."""
    buffer = io.BytesIO()
    Image.fromarray(image[:, :, ::-1]).convert(mode).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def with_orientation(image, orientation, **options):
    """A JPEG file that says how it is turned."""
    exif = Image.Exif()
    exif[0x112] = orientation
    return with_pillow(image, exif=exif.tobytes(), **options)


def decoded(name, file):
    """Name, width, height and SHA-256 of the RGB pixels that OpenCV decodes from a file; `None` if it refuses it."""
    pixels = cv2.imread(str(file), cv2.IMREAD_COLOR)
    if pixels is None:
        return None
    digest = hashlib.sha256(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB).tobytes()).hexdigest()
    return f"{name} {pixels.shape[1]} {pixels.shape[0]} {digest}"
