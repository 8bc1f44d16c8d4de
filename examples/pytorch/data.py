"""The task, and the order in which a run sees its samples.

The task: tell classes apart, each two clouds of points that overlap with those of other classes. It is generated, and the
same for every run.
"""

import hashlib

import torch

INPUTS, CLASSES, CLOUDS = 16, 8, 2
HELD_OUT = 2048  # samples that are never trained on
TASK_SEED = 0x747261696E


def task(size):
    """Returns (inputs, labels) of size samples to train on, and of the HELD_OUT samples to test with."""
    g = torch.Generator().manual_seed(TASK_SEED)
    centres = torch.randn(CLASSES, CLOUDS, INPUTS, generator=g)

    def draw(n):
        labels = torch.randint(CLASSES, (n,), generator=g)
        clouds = torch.randint(CLOUDS, (n,), generator=g)
        return centres[labels, clouds] + torch.randn(n, INPUTS, generator=g), labels

    held_out = draw(HELD_OUT)
    return draw(size), held_out


class Samples(torch.utils.data.Dataset):
    """Samples by lists of their indices, for a DataLoader that makes no batches itself."""

    def __init__(self, inputs, labels):
        self.inputs, self.labels = inputs, labels

    def __getitem__(self, indices):
        return self.inputs[indices], self.labels[indices]


def loader(samples, pieces, workers):
    """Returns an iterator over the samples of pieces, lists of indices that it asks for ahead of time. The workers are
    processes: they end with the iterator."""
    return iter(torch.utils.data.DataLoader(samples, sampler=pieces, batch_size=None, num_workers=workers))


class Order:
    """The samples of a run, one epoch's shuffle after the other.

    Sample k of a run depends on the seed and on k alone: whatever the world size, the batch sizes and the interruptions,
    an epoch holds every sample once, and two runs that have seen as many samples have seen the same ones.
    """

    def __init__(self, size, seed):
        self.size, self.seed = size, seed
        self.epoch, self.shuffle = None, None  # the last one asked for

    def take(self, first, count):
        """Returns the indices of samples first to first+count-1 of the run."""
        parts = []
        while count > 0:
            epoch, at = divmod(first, self.size)
            part = self._shuffle(epoch)[at : at + count]
            parts.append(part)
            first, count = first + len(part), count - len(part)
        return torch.cat(parts)

    def _shuffle(self, epoch):
        if epoch != self.epoch:
            digest = hashlib.sha256(f"{self.seed} {epoch}".encode()).digest()
            g = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
            self.epoch, self.shuffle = epoch, torch.randperm(self.size, generator=g)
        return self.shuffle


def share(batch, rank, world):
    """Returns the part of a global batch that a rank trains on; the sizes of the parts differ by at most one."""
    return batch[rank::world]
