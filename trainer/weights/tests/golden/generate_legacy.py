"""Writes legacy2.pt and legacy4.pt: the content of protocol2.pt in PyTorch's format before version 1.6.

    python generate_legacy.py

Needs torch and numpy. The classes of the model are stand-ins with the right names, because only names are in a pickle.
"""
import pathlib
import sys
import types

import torch

FOLDER = pathlib.Path(__file__).parent


def stand_in(module, name):
    """A class `name` in `module`, which is made if it is missing."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
    setattr(sys.modules[module], name, type(name, (torch.nn.Module,), {"__module__": module}))


def source_of(cls):
    """Stands in for the source of a class, which the format contains besides its name."""
    return ["# the source of a class\n"], 1, f"{cls.__name__}.py"


for module, name in [("models.yolo", "DetectionModel"), ("models.yolo", "Detect"), ("models.common", "Conv")]:
    stand_in(module, name)
torch.serialization.get_source_lines_and_file = source_of
content = torch.load(FOLDER / "protocol2.pt", weights_only=False)
for protocol in (2, 4):
    torch.save(
        content, FOLDER / f"legacy{protocol}.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=False
    )
