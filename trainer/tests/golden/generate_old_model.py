"""Writes small detectors as releases of YOLOv5 saved their own, and their outputs: old_model.pt as 3.0 did, and
model_4_0.pt, model_6_0.pt and model_7_0.pt; the outputs are in .safetensors of the same names.

    python generate_old_model.py

Needs torch and safetensors. In 3.0, the YAML does not name the activations: convolutions have Hardswish, and the joined
branches of a BottleneckCSP have LeakyReLU. Its file has the format of PyTorch before version 1.6. Since 4.0, all have SiLU
and C3; 6.0 begins with a convolution of 6 pixels instead of Focus, has SPPF instead of SPP, and keeps `anchor_grid` as
a list; in 7.0 the class of the model is DetectionModel. The modules are written from the description in
docs/yolov5-spec.md.
"""
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

from pickled_names import rename

FOLDER = pathlib.Path(__file__).parent
ACTIVATION = nn.Hardswish
ANCHORS = [[10, 13, 16, 30], [30, 61, 62, 45]]
YAML = {
    "nc": 2,
    "depth_multiple": 1.0,
    "width_multiple": 1.0,
    "anchors": ANCHORS,
    "backbone": [
        [-1, 1, "Focus", [8, 3]],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, "BottleneckCSP", [16]],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, "SPP", [16, [5, 9, 13]]],
    ],
    "head": [
        [-1, 1, "BottleneckCSP", [16, False]],
        [[2, 5], 1, "Detect", ["nc", "anchors"]],
    ],
}


def norm(channels):
    layer = nn.BatchNorm2d(channels, eps=1e-3, momentum=0.03)
    layer.running_mean.uniform_(-0.5, 0.5)
    layer.running_var.uniform_(0.5, 2.0)
    return layer


class Conv(nn.Module):
    def __init__(self, c1, c2, k=1, s=1, p=None):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(c1, c2, k, s, k // 2 if p is None else p, bias=False), norm(c2)
        self.act = ACTIVATION()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Focus(nn.Module):
    def __init__(self, c1, c2, k):
        super().__init__()
        self.conv = Conv(4 * c1, c2, k)

    def forward(self, x):
        corners = [x[..., row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.conv(torch.cat(corners, 1))


class Bottleneck(nn.Module):
    def __init__(self, c, adds):
        super().__init__()
        self.cv1, self.cv2, self.add = Conv(c, c), Conv(c, c, 3), adds

    def forward(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.add else y


class BottleneckCSP(nn.Module):
    def __init__(self, c1, c2, adds=True):
        super().__init__()
        c = c2 // 2
        self.cv1, self.cv4 = Conv(c1, c), Conv(2 * c, c2)
        self.cv2, self.cv3 = nn.Conv2d(c1, c, 1, bias=False), nn.Conv2d(c, c, 1, bias=False)
        self.bn, self.act = norm(2 * c), nn.LeakyReLU(0.1, inplace=True)
        self.m = nn.Sequential(Bottleneck(c, adds))

    def forward(self, x):
        joined = torch.cat([self.cv3(self.m(self.cv1(x))), self.cv2(x)], 1)
        return self.cv4(self.act(self.bn(joined)))


class SPP(nn.Module):
    def __init__(self, c1, c2, kernels):
        super().__init__()
        self.cv1, self.cv2 = Conv(c1, c1 // 2), Conv(c1 // 2 * (len(kernels) + 1), c2)
        self.m = nn.ModuleList(nn.MaxPool2d(k, 1, k // 2) for k in kernels)

    def forward(self, x):
        x = self.cv1(x)
        return self.cv2(torch.cat([x] + [pool(x) for pool in self.m], 1))


class Detect(nn.Module):
    def __init__(self, channels, strides, nc):
        super().__init__()
        pixels = torch.tensor(ANCHORS).float().view(len(strides), -1, 2)
        self.nc, self.stride = nc, torch.tensor(strides)
        self.register_buffer("anchors", pixels / self.stride.view(-1, 1, 1))
        self.register_buffer("anchor_grid", pixels.view(len(strides), 1, -1, 1, 1, 2))
        self.m = nn.ModuleList(nn.Conv2d(c, 2 * (nc + 5), 1) for c in channels)

    def forward(self, x):
        maps = []
        for layer, level in zip(self.m, x):
            batch, _, height, width = level.shape
            maps.append(layer(level).view(batch, 2, self.nc + 5, height, width).permute(0, 1, 3, 4, 2).contiguous())
        return maps


class C3(nn.Module):
    def __init__(self, c1, c2, adds=True):
        super().__init__()
        c = c2 // 2
        self.cv1, self.cv2, self.cv3 = Conv(c1, c), Conv(c1, c), Conv(2 * c, c2)
        self.m = nn.Sequential(Bottleneck(c, adds))

    def forward(self, x):
        return self.cv3(torch.cat([self.m(self.cv1(x)), self.cv2(x)], 1))


class SPPF(nn.Module):
    def __init__(self, c1, c2, k):
        super().__init__()
        self.cv1, self.cv2 = Conv(c1, c1 // 2), Conv(c1 // 2 * 4, c2)
        self.m = nn.MaxPool2d(k, 1, k // 2)

    def forward(self, x):
        x = self.cv1(x)
        once, twice = self.m(x), self.m(self.m(x))
        return self.cv2(torch.cat([x, once, twice, self.m(twice)], 1))


class Model(nn.Module):
    def __init__(self, layers, yaml, names):
        super().__init__()
        self.model, self.yaml = nn.Sequential(*layers), yaml
        self.names, self.stride = names, layers[-1].stride

    def forward(self, x):
        saved = {}
        for index, layer in enumerate(self.model):
            x = layer([saved[2], saved[5]] if index == 6 else x)
            saved[index] = x
        return x


def source_of(cls):
    """Stands in for the source of a class, which the format contains besides its name."""
    return ["# the source of a class\n"], 1, f"{cls.__name__}.py"


class DetectionModel(Model):
    pass


def write(file, model, **options):
    model.eval()
    image = torch.linspace(0, 1, 3 * 32 * 64).view(1, 3, 32, 64)
    with torch.no_grad():
        maps = model(image)
    checkpoint = {"epoch": -1, "best_fitness": None, "model": model, "optimizer": None}
    torch.save(checkpoint, FOLDER / f"{file}.pt", **options)
    save_file({"image": image, "map0": maps[0], "map1": maps[1]}, FOLDER / f"{file}.safetensors")


def described(stem, pooling):
    """The YAML of a model with SiLU."""
    rows = [
        [-1, 1, *stem],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, "C3", [16]],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, *pooling],
    ]
    head = [[-1, 1, "C3", [16, False]], [[2, 5], 1, "Detect", ["nc", "anchors"]]]
    return {**YAML, "backbone": rows, "head": head}


def layers(stem, pooling):
    detect = Detect([16, 16], [4.0, 8.0], 2)
    return [stem, Conv(8, 16, 3, 2), C3(16, 16), Conv(16, 16, 3, 2), pooling, C3(16, 16, False), detect]


for cls in (Conv, Focus, Bottleneck, BottleneckCSP, C3, SPP, SPPF):
    rename(cls, "models.common")
for cls in (Detect, Model, DetectionModel):
    rename(cls, "models.yolo")
torch.serialization.get_source_lines_and_file = source_of
torch.manual_seed(0)
old = [Focus(3, 8, 3), Conv(8, 16, 3, 2), BottleneckCSP(16, 16), Conv(16, 16, 3, 2)]
old += [SPP(16, 16, [5, 9, 13]), BottleneckCSP(16, 16, False), Detect([16, 16], [4.0, 8.0], 2)]
write("old_model", Model(old, YAML, ["cat", "dog"]), _use_new_zipfile_serialization=False)

ACTIVATION = nn.SiLU
yaml = described(["Focus", [8, 3]], ["SPP", [16, [5, 9, 13]]])
write("model_4_0", Model(layers(Focus(3, 8, 3), SPP(16, 16, [5, 9, 13])), yaml, ["cat", "dog"]))

yaml = described(["Conv", [8, 6, 2, 2]], ["SPPF", [16, 5]])
model = Model(layers(Conv(3, 8, 6, 2, 2), SPPF(16, 16, 5)), yaml, ["cat", "dog"])
detect = model.model[-1]
del detect.anchor_grid
detect.grid, detect.anchor_grid = [torch.zeros(1)] * 2, [torch.zeros(1)] * 2
detect.inplace = model.inplace = True
write("model_6_0", model.half().float())

model = DetectionModel(layers(Conv(3, 8, 6, 2, 2), SPPF(16, 16, 5)), yaml, {0: "cat", 1: "dog"})
del model.model[-1].anchor_grid
write("model_7_0", model)
