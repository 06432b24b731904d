#!/usr/bin/env bash
# Trains with torchrun on this machine, one rank per GPU:
#
#   RANKS=4 deploy/torchrun.sh --data data.yaml --weights yolov5s.pt --batch 64
#
# The options are those of `yolo train`. Without torchrun, `yolo train --device 0,1,2,3` does the same.
set -euo pipefail

# torchrun would set 1 thread per rank.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(($(nproc) / ${RANKS:-2} > 0 ? $(nproc) / ${RANKS:-2} : 1))}

# --standalone finds a free port; --no-python because yolo is not a Python script.
exec torchrun --standalone --nproc-per-node "${RANKS:-2}" --no-python yolo rank "$@"
