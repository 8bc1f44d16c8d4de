"""Tests of the parts: python3 -m unittest parts_test."""

import contextlib
import io
import os
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import checkpoint
import data
import noise
import train


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def save(self, step):
        checkpoint.save(self.folder, {"step": step, "weights": torch.full((2000,), float(step))})

    def newest(self):
        """Returns the step of the newest state, which must be whole, and 0 if there is none."""
        with contextlib.redirect_stderr(io.StringIO()):
            state = checkpoint.newest(self.folder)
        if state is None:
            return 0
        self.assertTrue(torch.equal(state["weights"], torch.full((2000,), float(state["step"]))))
        return state["step"]

    def test_keeps_two(self):
        """Ensure that the newest two stay, and that steps are compared as numbers."""
        self.assertEqual(checkpoint.saved(os.path.join(self.folder, "none")), [])
        for step in (9, 10, 100, 20):
            self.save(step)
        self.assertEqual(checkpoint.saved(self.folder), [20, 100])
        self.assertEqual(self.newest(), 100)

    def test_crash_at_any_call(self):
        """Ensure that a save that ends before any call to the system leaves the last state or the new one, and that the
        next save works."""
        ends = []
        for calls in range(100):
            self.save(calls * 10 + 1)
            if not self.dies(calls, calls * 10 + 2):
                break
            ends.append(self.newest() - calls * 10)
            self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".damaged")])
        self.assertEqual(ends[0], 1)
        self.assertEqual(ends[-1], 2)
        self.assertEqual(ends, sorted(ends))
        self.assertGreater(len(ends), 5)

    def dies(self, calls, step):
        """Saves in a process that ends at a call, after so many; says whether it came to that."""
        pid = os.fork()
        if pid == 0:
            left = iter(range(calls))

            def dying(call):
                def f(*args, **kwargs):
                    if next(left, None) is None:
                        os._exit(1)
                    return call(*args, **kwargs)
                return f

            for name in ("makedirs", "fsync", "replace", "open", "close", "remove"):
                setattr(os, name, dying(getattr(os, name)))
            half = torch.save

            def torn(state, f):  # the file is written in two halves
                whole = io.BytesIO()
                half(state, whole)
                f.write(whole.getvalue()[: len(whole.getvalue()) // 2])
                f.flush()
                os.fsync(f.fileno())
                f.write(whole.getvalue()[len(whole.getvalue()) // 2:])

            with mock.patch("torch.save", torn):
                self.save(step)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1

    def test_durable_in_order(self):
        """Ensure that the data is on the disk before it has its name, and that the name is before save returns."""
        calls = []
        with mock.patch("os.fsync", lambda fd: calls.append(os.path.isdir(f"/proc/self/fd/{fd}"))), \
                mock.patch("os.replace", side_effect=lambda a, b: (calls.append("replace"), os.rename(a, b))):
            self.save(1)
        self.assertEqual(calls, [False, "replace", True])

    def test_damaged(self):
        """Ensure that a file cut short anywhere, or with a bit turned over in its data, is set aside for the one before,
        and that with none left a run begins anew."""
        self.save(2)
        path = os.path.join(self.folder, checkpoint.file_name(2))
        with open(path, "rb") as f:
            good = f.read()
        where = random.Random(1)
        broken = [good[:n] for n in range(0, len(good), 97)]
        first = good.index(torch.full((2000,), 2.0).numpy().tobytes())
        for _ in range(50):
            at = where.randrange(first, first + 8000)
            broken.append(good[:at] + bytes([good[at] ^ 1 << where.randrange(8)]) + good[at + 1:])
        self.save(1)
        for text in broken:
            with open(path, "wb") as f:
                f.write(text)
            self.assertEqual(self.newest(), 1)
            self.assertEqual(os.listdir(self.folder).count(os.path.basename(path) + ".damaged"), 1)
        os.truncate(os.path.join(self.folder, checkpoint.file_name(1)), 50)
        self.assertEqual(self.newest(), 0)


class Order(unittest.TestCase):
    def test_any_batches(self):
        """Ensure that batches of any sizes, taken by any number of runs, go through the same samples, each once an epoch."""
        want = data.Order(50, seed=3).take(0, 200)
        for epoch in want.split(50):
            self.assertEqual(sorted(epoch.tolist()), list(range(50)))
        self.assertFalse(torch.equal(want[:50], want[50:100]))
        self.assertFalse(torch.equal(want, data.Order(50, seed=4).take(0, 200)))
        sizes = random.Random(2)
        for _ in range(20):
            at, parts, order = 0, [], data.Order(50, seed=3)
            while at < 200:
                n = min(sizes.randint(1, 120), 200 - at)
                parts.append(order.take(at, n))
                at += n
                if sizes.random() < 0.3:
                    order = data.Order(50, seed=3)  # another attempt
            self.assertTrue(torch.equal(torch.cat(parts), want))

    def test_shares(self):
        """Ensure that the shares of the ranks are the batch, and as even as can be."""
        for size in range(1, 30):
            for world in range(1, size + 1):
                batch = torch.arange(size)
                shares = [data.share(batch, rank, world) for rank in range(world)]
                self.assertEqual(sorted(torch.cat(shares).tolist()), list(range(size)))
                sizes = {len(s) for s in shares}
                self.assertLessEqual(max(sizes) - min(sizes), 1)


class Noise(unittest.TestCase):
    def test_known_gradient(self):
        """Ensure that the means over many batches are the norm and the variance that were put in, from parts that are even
        and uneven. The gradient of the sum of x*w is the sum of x, here with mean 0.5 in each of 10 coordinates and
        variance 4: squared norm 2.5, variance of a gradient of 8 samples 10*4/8."""
        w = torch.zeros(10, requires_grad=True)
        g = torch.Generator().manual_seed(1)
        for sizes in ([16, 16], [3, 29], [5, 6, 7, 8, 6]):
            estimates = []
            for _ in range(2000):
                x = 0.5 + 2 * torch.randn(32, 10, generator=g)
                estimates.append(noise.statistics([((p @ w).sum(), len(p)) for p in x.split(sizes)], [w], 32, 8))
            mean = torch.tensor(estimates).mean(0)
            error = torch.tensor(estimates).std(0) / 2000**0.5
            self.assertLess(float(((mean - torch.tensor([2.5, 5.0])) / error).abs().max()), 4, sizes)


class Steps(unittest.TestCase):
    def test_accumulation(self):
        """Ensure that a share taken in pieces has the gradient of the whole."""
        env = {"TRAINYARD_BATCH_GLOBAL": "30"}
        t = train.Training(train.parse([], env))
        t.ddp = torch.nn.parallel.DistributedDataParallel(t.model)
        mine = t.order.take(0, 30)
        want = torch.autograd.grad(cross_entropy(t.model(t.inputs[mine]), t.labels[mine]), list(t.model.parameters()))
        for pieces in (30, 15, 7, 1):
            t.c.per_rank = pieces
            total = t.backward(mine, 30)
            for a, b in zip(want, t.model.parameters()):
                torch.testing.assert_close(a, b.grad, rtol=1e-4, atol=1e-6)
            self.assertAlmostEqual(total / 30, float(cross_entropy(t.model(t.inputs[mine]), t.labels[mine])), 5)

    def test_too_fast(self):
        """Ensure that a loss that is no number ends the run, and says at which step."""
        t = train.Training(train.parse([], {"TRAINYARD_LR_SCALE": "1e30"}))
        t.ddp = torch.nn.parallel.DistributedDataParallel(t.model)
        with self.assertRaisesRegex(train.Refused, r"^step \d+: loss (nan|inf): the learning rate is too high$"), \
                contextlib.redirect_stdout(io.StringIO()):
            for _ in range(10):
                t.train()

    def test_wrong(self):
        """Ensure that what the user got wrong is named."""
        for args, env, want in [
                (["--batch", "0"], {}, "--batch 0"),
                (["--checkpoint-every", "-1"], {}, "--checkpoint-every -1"),
                ([], {"TRAINYARD_BATCH_GLOBAL": "-3"}, "TRAINYARD_BATCH_GLOBAL '-3'"),
                ([], {"TRAINYARD_BATCH_PER_GPU": "two"}, "TRAINYARD_BATCH_PER_GPU 'two'"),
                ([], {"TRAINYARD_LR_SCALE": "nan"}, "TRAINYARD_LR_SCALE 'nan'"),
                ([], {"TRAINYARD_LR_SCALE": "x"}, "TRAINYARD_LR_SCALE 'x'"),
                ([], {"TRAINYARD_BATCH_GLOBAL": "3", "WORLD_SIZE": "4"}, "a batch of 3 on 4 ranks"),
                (["--grad-stats"], {"TRAINYARD_BATCH_GLOBAL": "7", "WORLD_SIZE": "4"}, "a batch of 7 on 4 ranks")]:
            with self.assertRaises(ValueError) as e:
                train.parse(args, env)
            self.assertIn(want, str(e.exception))


class Ends(unittest.TestCase):
    def test_at_once(self):
        """Ensure that a run that has met its ranks ends with its own exit code and without Python's shutdown, in which a late
        thread of gloo may abort it, and that nothing of what it said is lost: also when it ends by an error."""
        whole = "import atexit, runpy, sys; atexit.register(print, 'shut down'); sys.argv[0] = 'train.py'; " \
                "runpy.run_path('train.py', run_name='__main__')"
        with tempfile.TemporaryDirectory() as folder:
            for flags, checkpoints, code, said in [
                    (["--epochs", "1", "--dataset", "64"], folder, train.DONE, "TRAINYARD done steps=1 "),
                    (["--seed", "2"], folder, train.ERROR, "train: checkpoint of --seed 1, want 2\n"),
                    (["--epochs", "1", "--dataset", "64"], "/dev/null/none", train.ERROR, "NotADirectoryError: ")]:
                r = subprocess.run([sys.executable, "-c", whole, *flags], capture_output=True, text=True,
                                   env={**os.environ, "TRAINYARD_CHECKPOINT_DIR": checkpoints})
                self.assertEqual(r.returncode, code, r.stderr)
                self.assertIn(said, r.stdout + r.stderr)
                self.assertNotIn("shut down", r.stdout)


def setUpModule():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def tearDownModule():
    dist.destroy_process_group()


if __name__ == "__main__":
    unittest.main()
