"""Statistics of the gradient, from which a scheduler tells what a larger batch is worth."""

import torch
import torch.distributed as dist


def statistics(losses, parameters, batch, unit):
    """Returns estimates of the squared norm of the true gradient and of the variance of a gradient of unit samples.

    losses are two or more (sum of losses, number of samples) of parts of one batch of batch samples that no two ranks
    share; every rank calls this. The gradient g of all and those of the parts, g_i of n_i samples, have

        E|g|^2 = G + S/batch    E|g_i|^2 = G + S/n_i

    which is solved for G and S; the variance is S/unit. Estimates of one batch scatter widely and G may come out negative:
    average them. The noise scale is unit*grad_var/grad_sqr (McCandlish et al., arXiv 1812.06162, appendix A).
    """
    parts = [(flat(torch.autograd.grad(loss, parameters)), n) for loss, n in losses]
    whole = sum(gradient for gradient, _ in parts)
    small = torch.tensor([[float((g / n).square().sum()), 1 / n, 1] for g, n in parts], dtype=torch.float64).sum(0)
    dist.all_reduce(whole)
    dist.all_reduce(small)
    norm, inverse = (small[:2] / small[2]).tolist()
    big = float((whole / batch).square().sum())
    scatter = (norm - big) / (inverse - 1 / batch)
    return big - scatter / batch, scatter / unit


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])
