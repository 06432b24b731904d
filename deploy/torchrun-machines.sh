#!/usr/bin/env bash
# Trains with torchrun on several machines. Run it on each of them, with the same values and options:
#
#   MACHINES=2 RANKS=4 MASTER=lab-1:29500 deploy/torchrun-machines.sh --data data.yaml --batch 64
#
# MASTER is one of the machines, which all reach at this name and port. All need the same release of yolo; the data
# set may be in another folder on each. Only the machine of rank 0 writes results.
set -euo pipefail

: "${MACHINES:?set the number of machines}" "${MASTER:?set the machine where all meet, for example lab-1:29500}"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(($(nproc) / ${RANKS:-1} > 0 ? $(nproc) / ${RANKS:-1} : 1))}

exec torchrun --nnodes "$MACHINES" --nproc-per-node "${RANKS:-1}" \
  --rdzv-backend c10d --rdzv-endpoint "$MASTER" --rdzv-id "${RUN:-yolo}" \
  --no-python yolo rank "$@"
