"""Each sample once in an epoch, whatever stops, ranks and batches."""

import collections
import random
import unittest

import trainyard


def step(size, batch, ranks, state):
    """Trains one step at all ranks from copies of a state, and returns what each saw, and the new state."""
    seen, after, padded = [], None, 0
    for rank in range(ranks):
        sampler = trainyard.ElasticSampler(size, batch, 7, dict(state), rank, ranks)
        ahead = iter(sampler)  # a DataLoader reads further than is trained
        seen.append(next(ahead))
        next(ahead, None)
        sampler.advance()
        after, padded = sampler.state_dict(), padded + (len(seen[-1]) if padded_at(size, batch, ranks, rank, state) else 0)
    return seen, after, padded


def padded_at(size, batch, ranks, rank, state):
    """Whether a rank has no sample of its own in the next batch, by counting."""
    n = min(batch, size - state.get("consumed", 0) % size)
    return not [i for i in range(n) if n * rank // ranks <= i < n * (rank + 1) // ranks]


class Sampler(unittest.TestCase):
    def test_once_an_epoch(self):
        draw = random.Random(3)
        for _ in range(200):
            size, state = draw.randint(1, 60), {}
            seen = collections.Counter()
            padded = 0
            while state.get("consumed", 0) < 2 * size:
                ranks = draw.randint(1, 5)
                before = state.get("consumed", 0) // size
                shares, state, more = step(size, draw.randint(ranks, 20), ranks, state)
                padded += more
                for share in shares:
                    seen.update((before, index) for index in share)
                if state["consumed"] // size > before:
                    of_epoch = [n for (epoch, _), n in seen.items() if epoch == before]
                    self.assertEqual(len(of_epoch), size, "each sample")
                    self.assertEqual(sum(of_epoch), size + padded, "once, but for what is padded")
                    padded = 0

    def test_order_is_of_seed_and_epoch(self):
        def epoch(ranks, batch, consumed):
            order = []
            samplers = [trainyard.ElasticSampler(50, batch, 1, {"size": 50, "seed": 1, "consumed": consumed}, r, ranks)
                        for r in range(ranks)]
            for parts in zip(*samplers):
                order += [i for part in parts for i in part]
            return order

        self.assertEqual(epoch(1, 10, 0), epoch(5, 25, 0))
        self.assertEqual(epoch(1, 10, 0)[20:], epoch(2, 6, 20))
        self.assertNotEqual(epoch(1, 10, 0), epoch(1, 10, 50))

    def test_padded_is_counted(self):
        sampler = trainyard.ElasticSampler(9, 4, 0, None, 2, 4)
        self.assertEqual([len(share) for share in sampler], [1, 1, 1])
        self.assertEqual(sampler.padded, 1)

    def test_refuses(self):
        for size, batch, rank, ranks, word in ((0, 4, 0, 1, "size 0"), (9, 1, 0, 2, "batch 1"), (9, 4, 3, 3, "rank 3")):
            with self.assertRaisesRegex(ValueError, word):
                trainyard.ElasticSampler(size, batch, 0, None, rank, ranks)
        with self.assertRaisesRegex(ValueError, "size 10, but the state was saved with 9"):
            trainyard.ElasticSampler(10, 4, 0, {"size": 9, "seed": 0, "consumed": 3})


if __name__ == "__main__":
    unittest.main()
