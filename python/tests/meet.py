"""Meets the other rank of its job, then waits until all jobs have: python tests/meet.py FOLDER JOBS."""

import os
import sys
import time

import torch
import torch.distributed as dist

folder, jobs = sys.argv[1], int(sys.argv[2])
job, port = os.environ["TRAINYARD_JOB_ID"], os.environ["MASTER_PORT"]


def alone(step: int) -> None:
    """Adds numbers of the ranks: the sum is another one if a rank of another job is among them."""
    rank = dist.get_rank()
    number = torch.tensor([float(2 * int(job) + rank + step)])
    dist.all_reduce(number)
    want = float(4 * int(job) + 1 + 2 * step)
    if dist.get_world_size() != 2 or number.item() != want:
        sys.exit(f"job {job} rank {rank} of {dist.get_world_size()}: sum {number.item()}, want {want}")


dist.init_process_group("gloo")
alone(0)
open(os.path.join(folder, f"{job}-{dist.get_rank()}-{port}"), "x").close()
while len(os.listdir(folder)) < 2 * jobs:
    time.sleep(0.05)
alone(1)
