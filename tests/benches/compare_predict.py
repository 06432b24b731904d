"""Compares the speed of `yolo predict` with detect.py of the Python original, in alternating rounds on one machine.

Both read the same pictures and write them with boxes: batch 1, single precision, the same number of threads. A round
measures each program from its start to its end, and to the first line about a picture. Pictures per second are counted
between the first and the last of these lines, so starting does not count there. The original needs a Python in which
`--original` runs detect.py with the options that follow.

    python tests/benches/compare_predict.py --yolo target/release/yolo --original "venv/bin/python detect.py" \
        --weights yolov5n.pt --pictures bccd/images/test [--rounds 5] [--threads 2]

Run it on a quiet machine. One line for each run, then medians, and the ratios of the medians.
"""
import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("--yolo", default="target/release/yolo")
parser.add_argument("--original", required=True, help="the command that runs detect.py")
parser.add_argument("--weights", required=True)
parser.add_argument("--pictures", required=True)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--threads", type=int, default=2)
options = parser.parse_args()


def measure(command):
    """Pictures per second, seconds to the first picture, and seconds in all."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [*command, "--source", options.pictures, "--weights", options.weights, "--device", "cpu",
                   "--project", folder, "--name", "run"]
        began = time.perf_counter()
        process = subprocess.Popen(command, env=environment, text=True, bufsize=1,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines, times = [], []
        for line in process.stdout:
            lines.append(line)
            if line.lstrip().startswith("image "):
                times.append(time.perf_counter() - began)
        code, seconds = process.wait(), time.perf_counter() - began
        if code != 0 or len(times) < 2:
            sys.exit(f"{shlex.join(command)} exited with status {code}:\n" + "".join(lines[-15:]))
        return (len(times) - 1) / (times[-1] - times[0]), times[0], seconds


programs = {"yolo": [options.yolo, "predict"], "original": shlex.split(options.original)}
results = {name: [] for name in programs}
for number in range(options.rounds):
    # Each is the first in every other round, in case a machine slows down.
    for name in list(programs)[:: -1 if number % 2 else 1]:
        results[name].append(measure(programs[name]))
        rate, first, seconds = results[name][-1]
        print(f"round {number + 1} {name}: {rate:.2f} pictures/s, {first:.2f} s to the first, {seconds:.2f} s in all",
              flush=True)
medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in results.items()}
for name, (rate, first, seconds) in medians.items():
    print(f"median {name}: {rate:.2f} pictures/s, {first:.2f} s to the first, {seconds:.2f} s in all")
ours, theirs = medians["yolo"], medians["original"]
print(f"yolo / original: {ours[0] / theirs[0]:.2f} times the pictures per second, {theirs[2] / ours[2]:.2f} times as fast in all")
