"""Checkpoints that were cut, altered, or met a full disk are never loaded, and cost none that are whole."""

import contextlib
import io
import os
import pickle
import shutil
import tempfile
import unittest

from trainyard import _job


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = io.StringIO()

    def at(self, step, **env):
        job = _job.Job({"TRAINYARD_JOB_ID": "1", "TRAINYARD_CHECKPOINT_DIR": self.folder, **env})
        job.step = step
        return job

    def save(self, step, state, **kw):
        job = self.at(step)
        with contextlib.redirect_stdout(self.out):
            job.checkpoints(**kw).save(state)
        return job

    def load(self):
        job = self.at(0)
        with contextlib.redirect_stderr(io.StringIO()) as err:
            state = job.checkpoints().load()
        return state, job.step, err.getvalue()

    def test_newest_and_kept(self):
        self.assertEqual(self.load(), (None, 0, ""))
        for step in (5, 10, 15):
            self.save(step, {"step": step})
        self.assertEqual(self.load(), ({"step": 15}, 15, ""))
        self.assertEqual(sorted(os.listdir(self.folder)), ["step-000000010", "step-000000015"])
        self.assertEqual(self.out.getvalue().split(), "TRAINYARD saved step=5 TRAINYARD saved step=10 TRAINYARD "
                         "saved step=15".split())

    def test_cut_at_any_byte(self):
        self.save(1, "old")
        self.save(2, "new" * 9)
        path = os.path.join(self.folder, "step-000000002")
        for name in os.listdir(path):
            with open(os.path.join(path, name), "rb") as f:
                whole = f.read()
            for size in range(len(whole)):
                with open(os.path.join(path, name), "wb") as f:
                    f.write(whole[:size])
                state, step, err = self.load()
                self.assertEqual((state, step), ("old", 1), f"{name} cut at {size}")
                self.assertIn("step-000000002 is not whole: passed over", err)
            for at in range(len(whole)):
                with open(os.path.join(path, name), "wb") as f:
                    f.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
                state, step, err = self.load()
                self.assertIn((state, step), (("old", 1), ("new" * 9, step)), f"{name} altered at {at}")
                if name == "data":
                    self.assertEqual(state, "old", f"altered at {at}")
            with open(os.path.join(path, name), "wb") as f:
                f.write(whole)
        os.remove(os.path.join(path, "COMPLETE"))
        self.assertEqual(self.load()[:2], ("old", 1))

    def test_full_disk(self):
        self.save(1, "old")

        def full(state, file):
            file.write(b"half")
            raise OSError(28, "No space left on device")

        for name in (".tmp-step-000000007", ".tmp-step-000000002"):
            os.mkdir(os.path.join(self.folder, name))  # of an attempt that was killed
        said = self.out.getvalue()
        with self.assertRaises(OSError), contextlib.redirect_stdout(self.out):
            self.at(2).checkpoints().save("new", full)
        self.assertEqual(self.out.getvalue(), said, "nothing was reported saved")
        self.assertEqual(os.listdir(self.folder), ["step-000000001"])
        self.assertEqual(self.load()[:2], ("old", 1))

    def test_same_step(self):
        job = self.save(3, "first")
        with contextlib.redirect_stdout(self.out):
            job.checkpoints().save("of a training that starts over")
        self.assertEqual(self.load()[0], "of a training that starts over")
        ck = job.checkpoints()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            ck.save("a")
            ck.save("b")
        self.assertEqual((self.load()[0], out.getvalue().count("saved")), ("a", 1))

    def test_killed_while_it_replaces(self):
        self.save(3, "first", keep=1)
        os.rename(os.path.join(self.folder, "step-000000003"), os.path.join(self.folder, "replaced-step-000000003"))
        self.assertEqual(self.load()[:2], ("first", 3))
        self.save(3, "second", keep=1)
        self.assertEqual(self.load()[:2], ("second", 3))
        self.save(4, "third", keep=1)
        self.assertEqual(os.listdir(self.folder), ["step-000000004"])

    def test_by_rank(self):
        ck = self.at(4, RANK="1", WORLD_SIZE="2").checkpoints(per_rank=True)
        with self.assertRaisesRegex(RuntimeError, "torch.distributed"):
            ck.save("part")
        self.assertIsNone(self.at(4, RANK="1", WORLD_SIZE="2").checkpoints().save("not of rank 0"))
        self.assertEqual(os.listdir(self.folder), [])
        self.at(4).checkpoints(per_rank=True).save("alone")
        with self.assertRaisesRegex(ValueError, "saved by 1 ranks, each its part; these are 2"):
            self.at(0, RANK="0", WORLD_SIZE="2").checkpoints(per_rank=True).load()

    def test_hostile_mark(self):
        self.save(1, "old")
        path = os.path.join(self.folder, "step-000000002")
        os.mkdir(path)
        for mark in ("[]", "{}", '{"step": true, "ranks": 1, "files": {"data": {}}}', "\x00", '{"step": 2, "ranks": 1, '
                     '"files": {"../step-000000001/data": {"size": 1, "crc32": 1}}}', '{"step":2,"ranks":1,"files":{}}'):
            with open(os.path.join(path, "COMPLETE"), "w") as f:
                f.write(mark)
            self.assertEqual(self.load()[:2], ("old", 1), mark)

    def test_elsewhere(self):
        job = _job.Job({})
        self.assertEqual(job.checkpoints().folder, "checkpoints")
        with self.assertRaisesRegex(ValueError, "keep 0"):
            job.checkpoints(keep=0)
        self.assertEqual(pickle.loads(pickle.dumps(1)), 1)


if __name__ == "__main__":
    unittest.main()
