"""Writes detect_geometry.json: what the functions of YOLOv5 7.0.14 that detect.py uses make of the sizes of pictures.

    PYTHONPATH=FOLDER_WITH_YOLOV5 python generate_detect_geometry.py

Each case has the height and width of a picture and of --imgsz, those of the letterboxed picture, a box in it, and that
box in whole pixels of the picture. The functions are only called.
"""
import json
import pathlib
import random

import numpy
import torch
from yolov5.utils.augmentations import letterbox
from yolov5.utils.general import scale_boxes

random.seed(5)
SIZES = [(480, 640), (333, 500), (500, 333), (720, 1280), (3, 1500), (37, 29), (1081, 1919), (640, 640), (101, 640)]
SIZES += [(random.randint(8, 1500), random.randint(8, 1500)) for _ in range(31)]
cases = []
for number, picture in enumerate(SIZES):
    imgsz = (640, 640) if number % 3 else random.choice([(416, 416), (320, 640), (640, 320), (128, 128)])
    boxed = letterbox(numpy.zeros((*picture, 3), numpy.uint8), imgsz, stride=32, auto=True)[0].shape[:2]
    x, y = sorted(random.uniform(-5, boxed[1] + 5) for _ in "ab"), sorted(random.uniform(-5, boxed[0] + 5) for _ in "ab")
    box = torch.tensor([[x[0], y[0], x[1], y[1]]], dtype=torch.float32)
    before = box[0].tolist()
    after = scale_boxes(boxed, box, (*picture, 3)).round()[0].tolist()
    cases.append({"picture": picture, "imgsz": imgsz, "input": boxed, "box": before, "pixels": after})
lines = ",\n".join(json.dumps(case) for case in cases)
(pathlib.Path(__file__).parent / "detect_geometry.json").write_text(f"[\n{lines}\n]\n")
