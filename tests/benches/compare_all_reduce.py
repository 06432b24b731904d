"""Compares the all-reduce of tch-distributed with that of Python's torch.distributed, over the same gloo.

Rounds alternate between the two, each with two fresh processes on the loopback address and one thread per
process, and the medians over the rounds are compared. It needs a Python with torch 2.11.0, with which it is
run itself, and the example `all_reduce`, built with `cargo build --release -p tch-distributed --examples`.

    python tests/benches/compare_all_reduce.py --example target/release/examples/all_reduce \
        [--bytes 7000000] [--repeats 200] [--rounds 5] [--limit 1.05]

Run it on a quiet machine. It exits with status 1 if the crate takes more than `--limit` times as long.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import sys

WARM_UP = 20

RANK = """
import datetime, sys, time
import torch, torch.distributed as dist
rank, port, size, repeats, warm_up = map(int, sys.argv[1:])
torch.set_num_threads(1)
timeout = datetime.timedelta(seconds=30)
store = dist.TCPStore("127.0.0.1", port, None, rank == 0, timeout=timeout, wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timeout)
tensor = torch.zeros(size // 4)
times = []
for repeat in range(warm_up + repeats):
    start = time.perf_counter()
    dist.all_reduce(tensor)
    if repeat >= warm_up:
        times.append(time.perf_counter() - start)
times.sort()
if rank == 0:
    print(f"median {times[len(times) // 2] * 1000:.3f} ms", flush=True)
dist.barrier()
"""


def median_of(text):
    found = re.search(r"median ([0-9.]+) ms", text)
    if found is None:
        sys.exit(f"no median in the output:\n{text}")
    return float(found.group(1))


def run_crate(arguments):
    command = [arguments.example, str(arguments.bytes), str(arguments.repeats)]
    return median_of(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)


def run_python(arguments):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    # gloo of torch listens on the address of this interface.
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    numbers = [port, arguments.bytes, arguments.repeats, WARM_UP]
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(rank), *map(str, numbers)],
                         env=environment, text=True, stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        sys.exit("a rank of Python failed")
    return median_of(outputs[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--example", required=True, help="the built example")
    parser.add_argument("--bytes", type=int, default=7_000_000)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.05)
    arguments = parser.parse_args()
    crate, python = [], []
    for turn in range(arguments.rounds):
        crate.append(run_crate(arguments))
        python.append(run_python(arguments))
        print(f"round {turn + 1}: crate {crate[-1]:.3f} ms, Python {python[-1]:.3f} ms", flush=True)
    ratio = statistics.median(crate) / statistics.median(python)
    print(f"median of {arguments.rounds}: crate {statistics.median(crate):.3f} ms, "
          f"Python {statistics.median(python):.3f} ms, ratio {ratio:.3f}")
    return 0 if ratio <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
