"""The memory of its GPU that a job that shares it may take."""

import sys
import warnings
from typing import Optional


def bound(mib: int, local_rank: Optional[int]) -> bool:
    """Has PyTorch allocate no more on the GPU of this process, and returns whether that is settled.

    It is not before the training itself uses CUDA: to do so here would open a context, and processes that fork later
    could not use it.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    try:
        before = torch.cuda.current_device()
        device = before
        if local_rank is not None and local_rank < torch.cuda.device_count():
            device = local_rank
        whole = torch.cuda.get_device_properties(device).total_memory
        try:
            torch.cuda.set_per_process_memory_fraction(min(mib * 2**20 / whole, 1.0), device)
        finally:
            torch.cuda.set_device(before)  # some versions leave it at the one that was bound
    except (AssertionError, RuntimeError) as error:
        warnings.warn(f"PyTorch is not kept to {mib} MiB of GPU memory: {error}", RuntimeWarning, stacklevel=2)
    return True
