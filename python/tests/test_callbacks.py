"""The callbacks, called in the order in which their libraries call them."""

import contextlib
import glob
import io
import os
import signal
import tempfile
import types
import unittest

from trainyard import _job, hf, lightning


def lines(out):
    return [line for line in out.getvalue().splitlines() if not line.startswith("TRAINYARD step=")]


class Callbacks(unittest.TestCase):
    def setUp(self):
        self.job = _job.Job({"TRAINYARD_JOB_ID": "1", "TRAINYARD_CHECKPOINT_DIR": tempfile.mkdtemp()})
        self.addCleanup(self.job._end, False)

    def hugging(self, steps, stop_at):
        """What Trainer does: https://github.com/huggingface/transformers, trainer.py, _inner_training_loop."""
        callback, args = hf.Callback(self.job), object()
        state = types.SimpleNamespace(global_step=0, max_steps=steps)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        callback.on_train_begin(args, state, control, model=None)
        while state.global_step < steps and not control.should_training_stop:
            state.global_step += 1
            if state.global_step == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)
            callback.on_step_end(args, state, control, optimizer=None)
            callback.on_log(args, state, control, logs={"loss": 0.5, "note": "x"})
            if control.should_save:
                control.should_save = False
                callback.on_save(args, state, control)
        callback.on_train_end(args, state, control)
        return state.global_step

    def test_hugging_face(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(self.hugging(5, 0), 5)
            self.job._end(True)
        self.assertEqual(lines(out), ["TRAINYARD done"])
        self.assertIn("TRAINYARD step=5 total=5", out.getvalue())
        self.job = _job.Job({"TRAINYARD_JOB_ID": "1"})
        with contextlib.redirect_stdout(io.StringIO()) as out, self.assertRaises(SystemExit) as ended:
            self.hugging(5, 3)
        self.assertEqual((ended.exception.code, lines(out)), (75, ["TRAINYARD saved step=3", "TRAINYARD ready"]))
        self.job._end(False)

    def fit(self, batches, stop_at):
        """What Trainer.fit does: https://github.com/Lightning-AI/pytorch-lightning, loops/training_epoch_loop.py."""
        def save_checkpoint(path):
            with open(path, "w") as f:
                f.write(str(trainer.global_step))

        trainer = types.SimpleNamespace(global_step=0, save_checkpoint=save_checkpoint)
        callback = lightning.Callback(self.job)
        callback.on_train_start(trainer, None)
        for i in range(batches):
            trainer.global_step += 1
            if trainer.global_step == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)
            callback.on_train_batch_end(trainer, None, None, None, i)
        callback.on_train_end(trainer, None)

    def test_lightning(self):
        self.assertIsNone(self.job.newest_file("*.ckpt"))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.fit(4, 0)
            self.assertEqual(lines(out), [])
            with self.assertRaises(SystemExit) as ended:
                self.fit(9, 7)
        self.assertEqual((ended.exception.code, lines(out)), (75, ["TRAINYARD saved step=7", "TRAINYARD ready"]))
        path = self.job.newest_file("*.ckpt")
        self.assertEqual(glob.glob(os.path.join(self.job.checkpoint_folder, "*")), [path])
        with open(path) as f:
            self.assertEqual(f.read(), "7")


if __name__ == "__main__":
    unittest.main()
