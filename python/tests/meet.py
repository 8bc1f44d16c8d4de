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

# Who ends first may take from the other what it has not read yet.
over = os.path.join(os.path.dirname(folder), "over")
os.makedirs(over, exist_ok=True)
open(os.path.join(over, f"{job}-{dist.get_rank()}"), "x").close()
while not all(os.path.exists(os.path.join(over, f"{job}-{rank}")) for rank in range(2)):
    time.sleep(0.05)
os._exit(0)  # threads of gloo may abort a process that ends in the ordinary way
