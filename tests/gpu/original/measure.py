"""Measures how fast the Python original, package yolov5 of PyPI, trains: unmodified, only called and timed.

    PYTHONPATH=site python3 measure.py --data bccd.yaml --device 0 --imgsz 640 --batch-size 16 --workers 8 \
        --precision fp32 --seconds 4 --work FOLDER

It trains yolov5n from random weights with images in memory, and ends after the given seconds of steps. A hundred steps
before that are a warm-up, because with small batches the original updates the weights more often in them; fewer, but at
least ten, if they take longer than the measurement. The time between epochs does not count. The result is one line of
JSON, an error a last line that begins with `error: `. Exit status 3 means that this Python cannot run the original.

The original has no option for its precision: on CUDA it trains with AMP if a check succeeds, for which it downloads
weights and an image. --precision answers that check instead, `amp` with yes and `fp32` with no.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import time
import warnings

CANNOT_RUN = 3
FEWEST_WARM_UP, WARM_UP = 10, 100
ENDLESS = 1_000_000
# As BCCD and the built-in data set have them.
IMAGES = {".bmp", ".jpeg", ".jpg", ".png"}


class Finished(BaseException):
    """Ends a training that has been measured. The original may handle exceptions, but not this one."""


class CannotRun(Exception):
    """This Python lacks something."""


class Meter:
    """Counts images and time of the steps that `Callbacks.run` of the original reports."""

    def __init__(self, seconds, synchronize, begins):
        self.wanted, self.synchronize, self.begins = seconds, synchronize, begins
        self.images, self.steps, self.seconds = 0, 0, 0.0
        self.first, self.since, self.warm_up = None, None, 0
        self.is_warm = False

    def now(self):
        self.synchronize()
        return time.perf_counter()

    def saw(self, hook, values):
        if hook == "on_train_epoch_start":
            self.since = self.now()
            self.first = self.first or self.since
        elif hook == "on_train_batch_end":
            self.step(values)
        elif hook == "on_train_epoch_end" and self.is_warm:
            self.seconds += self.now() - self.since

    def step(self, values):
        if not self.is_warm:
            self.warm_up += 1
            is_long = time.perf_counter() - self.first >= self.wanted
            if self.warm_up >= WARM_UP or (self.warm_up >= FEWEST_WARM_UP and is_long):
                self.is_warm = True
                self.begins()
                self.since = self.now()
            return
        self.steps += 1
        self.images += next(len(value) for value in values if getattr(value, "ndim", 0) == 4)
        if self.seconds + time.perf_counter() - self.since >= self.wanted:
            self.seconds += self.now() - self.since
            raise Finished


def arguments():
    parser = argparse.ArgumentParser(description="Measure how fast the Python original trains.")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="YAML file of the data set, in its folder")
    parser.add_argument("--device", required=True, help="cpu, or the number of a GPU")
    parser.add_argument("--imgsz", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--precision", choices=["fp32", "amp"], required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for what the original writes")
    return parser.parse_args()


def check_python():
    """Whether this Python is that of the packed wheels, and has PyTorch."""
    import importlib.util

    packed = json.loads(pathlib.Path(__file__).with_name("original.json").read_text())["python"]
    mine = "{}.{}".format(*sys.version_info)
    if mine != packed:
        raise CannotRun(f"`python3` is Python {mine}, and the pack is for {packed}; pack again with --original {mine}")
    for package, name in [("torch", "PyTorch"), ("torchvision", "torchvision")]:
        if importlib.util.find_spec(package) is None:
            raise CannotRun(f"the Python that `python3` starts has no {name}")


def check_shared_memory(options):
    """Whether the loader processes can pass on their batches: each prepares two. Containers often have 64 MB."""
    needed = 2 * options.workers * options.batch_size * 3 * options.imgsz**2
    free = shutil.disk_usage("/dev/shm").free
    if free < needed:
        needed, free = (f"{size / 1e6:.0f} MB" for size in (needed, free))
        raise CannotRun(f"the loader of the original needs {needed} in /dev/shm, which has {free} free")


def whole_batches(folder, batch):
    """The images of a folder that fill whole batches; all if they are fewer than a batch. `yolo bench` leaves out the
    others too: a step with a few images takes a GPU nearly as long as one with many."""
    images = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)
    return images[: len(images) // batch * batch or len(images)]


def copied(data, work, batch):
    """A copy of the data set, because the original writes into it. Returns its YAML file for this batch."""
    import yaml

    folder = work / "data"
    copy = folder / f"batch-{batch}.yaml"
    if copy.exists():
        return copy
    content = yaml.safe_load(data.read_text())
    root = data.parent / content.get("path", ".")
    if not folder.exists():
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns("*.cache", "*.npy", "*.yaml"))
    content["path"] = str(folder)
    train = folder / content["train"]
    if not train.is_dir():
        raise RuntimeError(f"the training split {content['train']} of {data.name} is not a folder")
    listed = folder / f"batch-{batch}.txt"
    listed.write_text("".join(f"{image}\n" for image in whole_batches(train, batch)))
    content["train"] = listed.name
    copy.write_text(yaml.safe_dump(content))
    return copy


def validate_once(original):
    """Lets later validations return what the first did. Their time does not count, but with a small data set it would be
    most of the time. `noval` is no way out: version 7.0.14 then fails at the end of the first epoch."""
    import yolov5.val as validation

    run, results = validation.run, []

    def once(*values, **more):
        if not results:
            results.append(run(*values, **more))
        return results[0]

    validation.run = once
    if original.validate is not validation:
        raise RuntimeError("the training of the original validates with another module than yolov5.val")


def nothing(*_, **__):
    """Takes the place of a function that is not needed."""


def measure(options):
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    # Neither settings in the home folder nor downloads.
    os.environ.update(YOLO_CONFIG_DIR=str(work), YOLOV5_CONFIG_DIR=str(work))
    os.environ.update(YOLO_OFFLINE="true", YOLO_AUTOINSTALL="false")
    check_shared_memory(options)
    check_python()
    import absent

    absent.install()
    import torch

    on_gpu = options.device != "cpu"
    if on_gpu and not torch.version.cuda:
        raise CannotRun(f"PyTorch {torch.__version__} of `python3` has no CUDA")
    import yolov5.utils.downloads as downloads
    import yolov5.utils.general as general

    # What it looks for on the network.
    general.check_font = downloads.attempt_download_from_hub = nothing
    import yolov5.train as original

    original.check_git_status = original.check_git_info = original.check_requirements = nothing
    original.check_amp = lambda model: options.precision == "amp"
    validate_once(original)
    data = copied(options.data.resolve(), work, options.batch_size)
    loaders = []
    create_loader = original.create_dataloader
    original.create_dataloader = lambda *a, **k: loaders.append(create_loader(*a, **k)) or loaders[-1]
    meter = Meter(options.seconds, torch.cuda.synchronize if on_gpu else lambda: None, absent.forbid)
    run_callbacks = original.Callbacks.run

    def run(self, hook, *values, **more):
        meter.saw(hook, [*values, *more.values()])
        return run_callbacks(self, hook, *values, **more)

    original.Callbacks.run = run
    # The original reads the command line of this script too.
    del sys.argv[1:]
    # PyTorch 2.11 warns of an old name in every step.
    warnings.simplefilter("ignore")
    try:
        original.run(
            data=str(data), cfg="yolov5n.yaml", weights="", imgsz=options.imgsz, batch_size=options.batch_size,
            device=options.device, workers=options.workers, cache="ram", epochs=ENDLESS, noautoanchor=True,
            noplots=True, nosave=True, patience=ENDLESS, project=str(work / "runs"), exist_ok=True,
        )
    except Finished:
        return result(options, meter, loaders[0][0].num_workers)
    raise RuntimeError("the training ended before it was measured")


def result(options, meter, workers):
    import cv2
    import numpy
    import torch
    from importlib.metadata import version

    return {
        "images": meter.images, "steps": meter.steps, "seconds": round(meter.seconds, 3),
        "images_per_second": round(meter.images / meter.seconds, 2), "precision": options.precision,
        "workers": workers, "version": version("yolov5"), "torch": torch.__version__,
        "numpy": numpy.__version__, "opencv": cv2.__version__, "tf32": torch.backends.cudnn.allow_tf32,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def main():
    options = arguments()
    try:
        line = json.dumps(measure(options))
    except CannotRun as error:
        print(f"error: {error}", file=sys.stderr)
        return CANNOT_RUN
    except Exception as error:
        import traceback

        traceback.print_exc()
        print(f"error: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
