"""Suppression of generated outputs by the original and by `cargo bench -p yolo-trainer --bench suppression`, in
alternating rounds of 32 images on the same numbers, which go through a file. The machine needs the original, here the
package yolov5 7.0.14 with what it imports, and room for 274 MB in the folder of `--file`.

    python compare_suppression.py --ours target/release/deps/suppression-… --images 5000

One line for each round: wall and processor seconds and detections of both, and the images that the original's time
limit left without any. The last line has medians per image.
"""
import argparse
import json
import statistics
import subprocess
import time

import numpy
import torch
from yolov5.utils.general import non_max_suppression

parser = argparse.ArgumentParser()
parser.add_argument("--ours", required=True)
parser.add_argument("--images", type=int, default=5000)
parser.add_argument("--file", default="/dev/shm/outputs.f32")
options = parser.parse_args()
ours = subprocess.Popen([options.ours], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_ours(_):
    ours.stdin.write(options.file + "\n")
    ours.stdin.flush()
    wall, processor, found = ours.stdout.readline().split()
    return float(wall), float(processor), int(found), 0


def run_original(outputs):
    wall, processor = time.perf_counter(), time.process_time()
    found = non_max_suppression(outputs, 0.001, 0.6, multi_label=True, max_det=300)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return wall, processor, sum(map(len, found)), sum(len(image) == 0 for image in found)


rounds = []
for number, first in enumerate(range(0, options.images, 32)):
    images = min(32, options.images - first)
    outputs = torch.from_numpy(
        numpy.random.default_rng(1000 + number).random((images, 25200, 85), dtype=numpy.float32)
    )
    # Boxes of 8 to 200 pixels anywhere in 640; one in nine objectnesses and classes is above 0.001.
    outputs[..., :2] *= 640
    outputs[..., 2:4] = 8 + 192 * outputs[..., 2:4]
    outputs[..., 4:] **= 60
    outputs.numpy().tofile(options.file)
    sides = {"ours": run_ours, "original": run_original}
    order = list(sides) if number % 2 else list(sides)[::-1]
    result = {side: sides[side](outputs) for side in order}
    rounds.append({"images": images, **result})
    print(json.dumps(rounds[-1]), flush=True)

for side in ("ours", "original"):
    for name, column in (("wall", 0), ("processor", 1)):
        values = [1000 * one[side][column] / one["images"] for one in rounds]
        print(f"{side}, {name}: {statistics.median(values):.2f} ms per image ({min(values):.2f} to {max(values):.2f})")
print("images left without detections by the original:", sum(one["original"][3] for one in rounds))
