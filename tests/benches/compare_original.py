"""Compares training speed and memory with the Python original, in one run on one machine.

Speeds differ between machines and from hour to hour, so only ratios within one run mean something.
The script alternates between the original with one process, `yolo train` with one process and
`yolo train` with two ranks, for as many rounds as asked, and prints the medians as a table for
docs/benchmarks.md. It needs a Python with the original installed, and a script that trains it and
prints its rate as one line of JSON. Without `--original`, it compares two ranks with one process.

    python tests/benches/compare_original.py --original "venv/bin/python original.py" \
        --data bccd.yaml --weights yolov5n.pt [--rounds 3] [--threads 2]

Both sides get `--cache ram`, because `yolo` keeps decoded images in memory by default and the
original does not. Run it on a quiet machine: two OpenMP threads collapse next to a compiler. It
does not compare the loaders.
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

# Seconds after the start from which memory is sampled. Both programs train by then, and for several more epochs.
MEMORY_FROM = 8
# Epochs of each run. The first is not counted.
EPOCHS = 5


class Watched:
    """A finished command: its output lines with their times, and its peak memory."""

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
            sys.exit(f"{shlex.join(command)} exited with status {code}:\n" + "".join(line for _, line in self.lines[-15:]))

    def _watch_memory(self, root, done):
        """Samples the proportional memory of the process tree, in which shared pages count once.

        Reading it delays the page faults of the process, so sampling starts after the first step.
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
        "--data", options.data, "--weights", options.weights, "--imgsz", "320", "--batch-size", "8", "--epochs", str(EPOCHS),
        "--cache", "ram"]
    run = Watched(command, options.threads)
    numbers = json.loads(next(line for _, line in reversed(run.lines) if line.startswith("{")))
    return {"images/s": numbers["images_per_second"], "first step, s": numbers["first_step_s"], "memory, MB": run.peak_mb}


def ours(options, ranks):
    with tempfile.TemporaryDirectory() as project:
        run = Watched([options.yolo, "train", "--data", options.data, "--weights", options.weights, "--imgsz", "320",
                       "--batch", "8", "--epochs", str(EPOCHS), "--device", "cpu", "--nproc-per-node", str(ranks),
                       "--cache", "ram", "--project", project, "--nosave"], max(1, options.threads // ranks))
    epochs = [line.split() for _, line in run.lines if re.match(rf" +\d+/{EPOCHS} ", line)]
    rates = [float(next(word for word in reversed(words) if word != "best")) for words in epochs]
    first = next(when for when, line in run.lines if line.startswith(f"epoch 1/{EPOCHS}  1/"))
    return {"images/s": statistics.mean(rates[1:]), "first step, s": first, "memory, MB": run.peak_mb}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--original", help="command that trains the original and prints its rate")
    parser.add_argument("--yolo", default="target/release/yolo")
    parser.add_argument("--data", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    sides = {"yolo, one process": lambda: ours(options, 1), "yolo, two ranks": lambda: ours(options, 2)}
    if options.original:
        sides = {"Python original, one process": lambda: original(options)} | sides
    first, rows = next(iter(sides)), {name: [] for name in sides}
    for turn in range(options.rounds):
        # Every other round goes backward, so that none of the sides always follows the same other one.
        order = list(sides.items())[:: 1 if turn % 2 == 0 else -1]
        for name, run in order:
            numbers = run()
            rows[name].append(numbers)
            print(f"{name}: {numbers}", file=sys.stderr)

    print("| | images/s | ratio to the first row | first step, s | memory, MB |\n|---|---|---|---|---|")
    for name, turns in rows.items():
        median = lambda key: statistics.median(turn[key] for turn in turns)
        base = rows[first]
        ratios = [turn["images/s"] / other["images/s"] for turn, other in zip(turns, base)]
        cells = [f"{median('images/s'):.1f}", f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"]
        cells += [f"{median('first step, s'):.2f}", f"{median('memory, MB'):.0f}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
