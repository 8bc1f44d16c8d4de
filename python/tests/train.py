"""A training by two or three ranks, with workers, as its test stops it again and again: train.py FOLDER STEPS.

Each rank appends a line to FOLDER/rank-N for each step: attempt, step, loss, samples.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

import trainyard

SIZE, BATCH = 101, 10


class Points(Dataset):
    def __len__(self):
        return SIZE

    def __getitem__(self, i):
        x = torch.sin(torch.arange(8) * (i + 1.0))
        return i, x, x.sum() * 0.5 + 0.1 * i / SIZE


def main(folder, total):
    torch.set_num_threads(1)
    # Gradients of three ranks are summed in another order in the first steps after a start, until DDP has arranged them
    # again: in single precision that is seen in the seventh digit after some starts.
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    out = open(os.path.join(folder, f"rank-{dist.get_rank()}"), "a", buffering=1)
    with trainyard.job() as ty:
        ck = ty.checkpoints(keep=2)
        state = ck.load(torch.load)
        if state is None:
            state = {"sampler": {}}
        else:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        sampler = trainyard.ElasticSampler(SIZE, BATCH, 5, state["sampler"])

        def save():
            state.update(model=model.state_dict(), optimizer=optimizer.state_dict())
            ck.save(state, torch.save)

        for i, x, y in ty.steps(DataLoader(Points(), batch_sampler=sampler, num_workers=2), total, save, every=20):
            optimizer.zero_grad()
            loss = ((model(x).squeeze(1) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            time.sleep(0.03)
            ty.tell(loss=loss.detach())
            print(ty.attempt, ty.step, f"{loss.item():.9e}", *i.tolist(), file=out)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
