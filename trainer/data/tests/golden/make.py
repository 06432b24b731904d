"""Makes image_weights.json and quad.json: the formulas of --image-weights in numpy, and the enlargement of --quad by
PyTorch's bilinear interpolation. The tests of this crate compare with them. Needs numpy and torch."""

import json
import pathlib

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).parent
rng = np.random.default_rng(3)


def image_weights():
    classes = 5
    labels = [rng.integers(0, classes - 1, rng.integers(0, 7)).tolist() for _ in range(12)] + [[]]
    counts = np.array([np.bincount(np.array(image, dtype=int), minlength=classes) for image in labels])
    total = counts.sum(0)
    # The last class has no labels, which counts as one.
    inverse = 1.0 / np.where(total == 0, 1, total)
    class_weights = inverse / inverse.sum()
    cases = []
    for precisions in [np.zeros(classes), rng.random(classes), np.array([1.0, 0.5, 0.25, 0.9, 0.0])]:
        epoch = class_weights * classes * (1 - precisions) ** 2 / classes
        images = (counts * epoch).sum(1)
        case = {"average_precisions": precisions, "epoch": epoch, "images": images}
        cases.append({name: values.tolist() for name, values in case.items()})
    return {"labels": labels, "class_weights": class_weights.tolist(), "cases": cases}


def quad():
    cases = []
    for height, width in [(1, 1), (3, 5), (8, 4)]:
        image = torch.from_numpy(rng.integers(0, 256, (3, height, width), dtype=np.uint8))
        options = {"scale_factor": 2.0, "mode": "bilinear", "align_corners": False}
        enlarged = torch.nn.functional.interpolate(image[None].float(), **options)[0].type(torch.uint8)
        flat = {"image": image.flatten().tolist(), "enlarged": enlarged.flatten().tolist()}
        cases.append({"height": height, "width": width, **flat})
    return {"cases": cases}


for name, make in [("image_weights", image_weights), ("quad", quad)]:
    (FOLDER / f"{name}.json").write_text(json.dumps(make()) + "\n")
