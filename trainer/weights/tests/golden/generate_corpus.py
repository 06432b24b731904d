"""Writes corpus/: tensors of every kind, as PyTorch writes them in all of its layouts and pickle protocols, and what is in
them.

    python generate_corpus.py

Needs torch 2.11 and numpy. `expected.json` has the type, the shape and the SHA-256 sum of the contiguous little-endian bytes of
each tensor, computed from the tensor and not from a file. `refused/` has tensors that the reader does not support.
"""
import hashlib
import json
import pathlib
import shutil
import warnings

import torch

FOLDER = pathlib.Path(__file__).parent / "corpus"
shutil.rmtree(FOLDER, ignore_errors=True)
(FOLDER / "refused").mkdir(parents=True)
warnings.simplefilter("ignore")

generator = torch.Generator().manual_seed(7)
tensors = {}
for name in ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]:
    dtype = getattr(torch, name)
    numbers = torch.randint(-100, 100, (3, 4), generator=generator)
    tensors[name] = (numbers / 7 if dtype.is_floating_point else numbers % 2 if name == "bool" else numbers).to(dtype)
base = torch.arange(60.0).reshape(3, 4, 5)
tensors |= {
    "scalar": torch.tensor(1.5),
    "empty": torch.empty(0, 3),
    "base": base,
    "the same storage": base,
    "a row": base[1],
    "one element": base[2, 3, 4],
    "transposed": base.transpose(0, 2),
    "every second": base[::2, 1::2, ::3],
    "repeated": base[0, 0].expand(4, 5),
    "channels last": torch.arange(48.0).reshape(2, 3, 2, 4).to(memory_format=torch.channels_last),
    "as another type": torch.arange(6, dtype=torch.int32).view(torch.float32),
    "parameter": torch.nn.Parameter(torch.ones(2, 2)),
    "parameter without gradient": torch.nn.Parameter(torch.zeros(2), requires_grad=False),
    "not finite": torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0]),
}
expected = {}
for name, tensor in tensors.items():
    plain = tensor.detach().contiguous()
    raw = bytes(plain.view(-1).view(torch.uint8).numpy()) if plain.numel() else b""
    expected[name] = [str(plain.dtype)[len("torch.") :], list(plain.shape), hashlib.sha256(raw).hexdigest()]
(FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
for layout, is_zip in [("zip", True), ("legacy", False)]:
    for protocol in range(2, 6):
        torch.save(
            {"epoch": 3, "model": tensors},
            FOLDER / f"{layout}{protocol}.pt",
            pickle_protocol=protocol,
            _use_new_zipfile_serialization=is_zip,
        )

indices = torch.tensor([[0, 1], [1, 0]])
refused = {
    "sparse": torch.sparse_coo_tensor(indices, torch.ones(2), (2, 2)),
    "sparse_csr": torch.eye(2).to_sparse_csr(),
    "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "complex": torch.ones(2, dtype=torch.complex64),
    "float8": torch.ones(2).to(torch.float8_e4m3fn),
    "uint16": torch.ones(2, dtype=torch.uint16),
    "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "meta": torch.ones(2, device="meta"),
}
for name, tensor in refused.items():
    torch.save({"model": {"weight": tensor}}, FOLDER / "refused" / f"{name}.pt")
