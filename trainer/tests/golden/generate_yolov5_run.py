"""Writes yolov5_run.pt, the last.pt of a run of YOLOv5 7.0 with a small detector, and yolov5_run.safetensors: the state of
the optimizer for each parameter, gradients, and the weights after a step with them. The run has SGD; those in
yolov5_run_adam and yolov5_run_adamw have Adam and AdamW.

    python generate_yolov5_run.py

Needs torch, numpy and safetensors. The modules are written from the description in docs/yolov5-spec.md, and have the names
that they have in the package `yolov5`, because a pickle names them. As in YOLOv5, the weights are in half precision, the
optimizer has its three groups, and numbers are NumPy's where they are there.
"""
import copy
import pathlib

import numpy
import torch
from safetensors.torch import save_file
from torch import nn

from pickled_names import rename

FOLDER = pathlib.Path(__file__).parent
ANCHORS = [[10, 13, 16, 30], [30, 61, 62, 45]]
YAML = {
    "nc": 2,
    "ch": 3,
    "depth_multiple": 1.0,
    "width_multiple": 1.0,
    "anchors": ANCHORS,
    "backbone": [[-1, 1, "Conv", [8, 3, 2]], [-1, 1, "Conv", [8, 3, 2]], [-1, 1, "Conv", [16, 3, 2]]],
    "head": [[[1, 2], 1, "Detect", ["nc", "anchors"]]],
}


class Conv(nn.Module):
    def __init__(self, c1, c2, k, s):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, k // 2, bias=False)
        self.bn, self.act = nn.BatchNorm2d(c2, eps=1e-3, momentum=0.03), nn.SiLU()


class Detect(nn.Module):
    def __init__(self, channels, strides, nc):
        super().__init__()
        pixels = torch.tensor(ANCHORS).float().view(len(strides), -1, 2)
        self.nc, self.stride = nc, torch.tensor(strides)
        self.register_buffer("anchors", pixels / self.stride.view(-1, 1, 1))
        self.m = nn.ModuleList(nn.Conv2d(c, 2 * (nc + 5), 1) for c in channels)


class DetectionModel(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [Conv(3, 8, 3, 2), Conv(8, 8, 3, 2), Conv(8, 16, 3, 2), Detect([8, 16], [4.0, 8.0], 2)]
        self.model, self.yaml = nn.Sequential(*layers), YAML
        self.names, self.stride = {0: "red", 1: "blue"}, layers[-1].stride


def gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator) * 0.1


rename(Conv, "yolov5.models.common")
rename(Detect, "yolov5.models.yolo")
rename(DetectionModel, "yolov5.models.yolo")
def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.937, nesterov=True)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01, betas=(0.937, 0.999))


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01, betas=(0.937, 0.999), weight_decay=0.0)


def write(file, optimizer_of):
    torch.manual_seed(0)
    model = DetectionModel()
    average = copy.deepcopy(model)
    named = list(model.named_parameters())
    biases = [p for name, p in named if name.endswith(".bias")]
    norms = [p for name, p in named if name.endswith("bn.weight")]
    others = [p for name, p in named if name.endswith(".weight") and not name.endswith("bn.weight")]
    optimizer = optimizer_of(biases)
    optimizer.add_param_group({"params": others, "weight_decay": 0.0005})
    optimizer.add_param_group({"params": norms, "weight_decay": 0.0})
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    for step in range(3):
        gradients(model, step)
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = [0.08, 0.002, 0.002][number]
            if "momentum" in group:
                group["momentum"] = numpy.float64(0.8 + 0.01 * step)
        optimizer.step()
    with torch.no_grad():
        for tensor, other in zip(average.parameters(), model.parameters()):
            tensor.lerp_(other, 0.1)

    checkpoint = {
        "epoch": 0,
        "best_fitness": numpy.array([0.25]),
        "model": copy.deepcopy(model).half(),
        "ema": copy.deepcopy(average).half(),
        "updates": 3,
        "optimizer": optimizer.state_dict(),
        "opt": {"epochs": 3, "batch_size": 8},
        "git": {"remote": None, "branch": None, "commit": None},
        "date": "2026-01-01T00:00:00",
    }
    torch.save(checkpoint, FOLDER / f"{file}.pt")

    # What YOLOv5 does when it resumes: the rounded weights in single precision, and the optimizer as it was.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    states = ["momentum_buffer", "exp_avg", "exp_avg_sq"]
    expected = {
        f"{'momentum' if state == 'momentum_buffer' else state}.{name}": optimizer.state[p][state].clone()
        for name, p in named for state in states if state in optimizer.state[p]
    }
    gradients(model, 100)
    expected |= {f"gradient.{name}": p.grad.clone() for name, p in named}
    optimizer.step()
    expected |= {f"after.{name}": p.detach().clone() for name, p in named}
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, FOLDER / f"{file}.safetensors")


write("yolov5_run", sgd)
write("yolov5_run_adam", adam)
write("yolov5_run_adamw", adamw)
