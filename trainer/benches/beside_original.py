"""Training and loading beside the Python original, in one run on one machine.

Speeds drift from machine to machine and from hour to hour, so that only ratios out of one run mean
something. This script takes turns: the original with one process, `yolo train` with one, `yolo train`
with two ranks, then both loaders alone, as many rounds as asked for, and prints the median of each as
a table for the README. It needs what the README names beside its figures: a Python with the original
installed, and a script that trains it and prints its rate as one line of JSON.

    python trainer/benches/beside_original.py --original "V/bin/python original.py" \
        --data bccd.yaml --weights yolov5n.pt [--rounds 3] [--threads 2]

Run it on a quiet machine: two threads of OpenMP collapse beside a compiler.
"""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# The loader of the original, called through its public function with the settings of our benchmark
# `loader`: mosaics with default augmentation, 320 pixels, batches of 16.
ORIGINAL_LOADER = """
import sys, time
prefix = open(sys.argv[1]).read().split("steps, epochs = ")[0]
exec(compile(prefix, sys.argv[1], "exec"))
from yolov5.utils.dataloaders import create_dataloader
hyp = dict(hsv_h=.015, hsv_s=.7, hsv_v=.4, degrees=0., translate=.1, scale=.5, shear=0., perspective=0.,
           flipud=0., fliplr=.5, mosaic=1., mixup=0., copy_paste=0.)
loader, _ = create_dataloader(sys.argv[2], 320, 16, 32, hyp=hyp, augment=True, workers=int(sys.argv[3]), shuffle=True)
rates = []
for epoch in range(4):
    started, images = time.perf_counter(), 0
    for batch in loader:
        images += len(batch[0])
    rates.append(images / (time.perf_counter() - started))
print("RATE", sum(rates[1:]) / 3)
"""

# Seconds after the start from which memory is sampled: both programs are in their first epoch then.
MEMORY_FROM = 17


class Watched:
    """A finished command: its lines with the second in which each came, and its peak memory."""

    def __init__(self, command, threads):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, text=True, bufsize=1,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines, self.peak_mb = [], 0
        done = threading.Event()
        watcher = threading.Thread(target=self._watch_memory, args=(process.pid, done))
        watcher.start()
        for line in process.stdout:
            self.lines.append((time.perf_counter() - started, line))
        code = process.wait()
        done.set()
        watcher.join()
        if code != 0:
            sys.exit(f"{shlex.join(command)} ended with {code}:\n" + "".join(line for _, line in self.lines[-15:]))

    def _watch_memory(self, root, done):
        """The proportional memory of the whole tree, sampled: shared pages count once.

        Reading it stops the process's page faults, so that it begins after the first step of either.
        """
        pause = MEMORY_FROM
        while not done.wait(pause):
            pause = 0.5
            tree, total = [root], 0
            while tree:
                pid = tree.pop()
                try:
                    for task in os.listdir(f"/proc/{pid}/task"):
                        tree += open(f"/proc/{pid}/task/{task}/children").read().split()
                    found = re.search(r"^Pss: +(\d+)", open(f"/proc/{pid}/smaps_rollup").read(), re.M)
                    total += int(found.group(1)) if found else 0
                except OSError:
                    continue
            self.peak_mb = max(self.peak_mb, total // 1024)


def original(options):
    command = shlex.split(options.original) + [
        "--data", options.data, "--weights", options.weights, "--imgsz", "320", "--batch-size", "8", "--epochs", "3"]
    run = Watched(command, options.threads)
    figures = json.loads(next(line for _, line in reversed(run.lines) if line.startswith("{")))
    return {"images/s": figures["images_per_second"], "first step, s": figures["first_step_s"], "memory, MB": run.peak_mb}


def ours(options, ranks):
    with tempfile.TemporaryDirectory() as project:
        run = Watched([options.yolo, "train", "--data", options.data, "--weights", options.weights, "--imgsz", "320",
                       "--batch", "8", "--epochs", "3", "--device", "cpu", "--nproc-per-node", str(ranks),
                       "--project", project, "--nosave"], max(1, options.threads // ranks))
    epochs = [line.split() for _, line in run.lines if re.match(r" +\d+/3 ", line)]
    rates = [float(next(word for word in reversed(words) if word != "best")) for words in epochs]
    first = next(when for when, line in run.lines if line.startswith("epoch 1/3  1/"))
    return {"images/s": statistics.mean(rates[1:]), "first step, s": first, "memory, MB": run.peak_mb}


def loaders(options, images):
    python, script = shlex.split(options.original)[:2]
    workers = str(options.threads)
    theirs = Watched([python, "-c", ORIGINAL_LOADER, script, images, workers], 1)
    rate = next(float(line.split()[1]) for _, line in reversed(theirs.lines) if line.startswith("RATE"))
    bench = subprocess.run(["cargo", "bench", "-q", "-p", "yolo-data", "--bench", "loader"], text=True, check=True,
                           capture_output=True, env={**os.environ, "YOLO_BENCH_DATA": images}).stdout
    mine = float(re.search(rf"^{workers} workers: .* ([\d.]+) later", bench, re.M).group(1))
    return {"images/s": rate}, {"images/s": mine}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--original", required=True, help="command that trains the original and prints its rate")
    parser.add_argument("--yolo", default="target/release/yolo")
    parser.add_argument("--data", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--images", help="folder of training images, for the loaders")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    rows = {}
    for _ in range(options.rounds):
        turns = {"Python original, one process": original(options), "yolo, one process": ours(options, 1),
                 "yolo, two ranks": ours(options, 2)}
        if options.images:
            turns["Python original, loader"], turns["yolo, loader"] = loaders(options, options.images)
        for name, figures in turns.items():
            rows.setdefault(name, []).append(figures)
            print(f"{name}: {figures}", file=sys.stderr)

    print("| | images/s | beside the original | first step, s | memory, MB |\n|---|---|---|---|---|")
    for name, turns in rows.items():
        median = lambda key: statistics.median(turn[key] for turn in turns) if key in turns[0] else None
        base = rows["Python original, loader" if "loader" in name else "Python original, one process"]
        ratios = [turn["images/s"] / other["images/s"] for turn, other in zip(turns, base)]
        cells = [f"{median('images/s'):.1f}", f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"]
        cells += [f"{median(key):.{digits}f}" if median(key) is not None else "" for key, digits in
                  (("first step, s", 2), ("memory, MB", 0))]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
