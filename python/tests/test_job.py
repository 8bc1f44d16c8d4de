"""Steps, signals and lines, with and without a scheduler, in processes of their own."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import unittest.mock
import warnings

import trainyard
from trainyard import _job

SCHEDULERS = ("TRAINYARD_", "SLURM_", "KUBERNETES_", "PET_", "RANK", "WORLD_SIZE")


def run(body, stop=None, **env):
    """Runs a script, sends it a signal once it has written "go", and returns its exit code and both outputs."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(SCHEDULERS)}
    clean["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.abspath(trainyard.__file__)))
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.Popen([sys.executable, "-c", textwrap.dedent(body)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, cwd=folder, env={**clean, **env})
        head = ""
        while stop is not None and not head.endswith("go\n"):
            line = p.stdout.readline()
            if not line:
                break
            head += line
        if stop is not None:
            p.send_signal(stop)
        out, err = p.communicate(timeout=120)
        return p.returncode, head + out, err, sorted(os.listdir(folder))


STEPS = """
    import signal, time, trainyard
    {0}
    with trainyard.job() as ty:
        ck = ty.checkpoints()
        state = ck.load() or {{"n": 0}}
        for i in ty.steps(range(1000), save=lambda: ck.save(state), every=400):
            state["n"] += 1
            if i == 3:
                print("go", flush=True)
            if i >= 3:
                time.sleep(0.02)
    print("end", state["n"])
"""


class Card:
    """What torch.cuda says of two GPUs of 80 GiB, and what it is asked for."""

    def __init__(self, used=True, current=0, fails=None):
        self.cuda, self.used, self.current, self.fails, self.fractions = self, used, current, fails, {}
        self.total_memory = 80 * 2**30

    def is_initialized(self):
        return self.used

    def is_available(self):
        raise AssertionError("it may open a context")

    def device_count(self):
        return 2

    def current_device(self):
        assert self.used
        return self.current

    def set_device(self, device):
        assert self.used
        self.current = device

    def get_device_properties(self, device):
        assert self.used
        return self

    def set_per_process_memory_fraction(self, fraction, device):
        assert self.used
        self.current = device  # as PyTorch does
        if self.fails is not None:
            raise self.fails
        self.fractions[device] = fraction


class Memory(unittest.TestCase):
    def fractions(self, torch, uses=None, **env):
        """What is bound once two steps were done, before the first of which the training uses CUDA, or in it."""
        current = torch.current
        with unittest.mock.patch.dict(os.environ, env), unittest.mock.patch.dict(sys.modules, {"torch": torch}):
            with trainyard.job() as ty:
                at_first = dict(torch.fractions)
                torch.used = torch.used or uses == "before"
                for _ in ty.steps(range(2)):
                    torch.used = torch.used or uses == "in"
        self.assertEqual(torch.current, current)
        if uses is not None:
            self.assertEqual(at_first, {})
        return ty.gpu_memory_mib, torch.fractions

    def test_a_job_that_shares_keeps_to_its_figure(self):
        self.assertEqual(self.fractions(Card(), TRAINYARD_GPU_MEMORY_MIB="20480"), (20480, {0: 0.25}))
        self.assertEqual(self.fractions(Card(), TRAINYARD_GPU_MEMORY_MIB="90000"), (90000, {0: 1.0}))
        self.assertEqual(self.fractions(Card(current=1), TRAINYARD_GPU_MEMORY_MIB="20480"), (20480, {1: 0.25}))

    def test_a_rank_keeps_to_it_on_its_own_gpu(self):
        for rank, device in (("0", 0), ("1", 1), ("2", 0), ("x", 0)):
            got = self.fractions(Card(), TRAINYARD_GPU_MEMORY_MIB="20480", LOCAL_RANK=rank)
            self.assertEqual(got, (20480, {device: 0.25}), rank)

    def test_cuda_is_left_to_the_training(self):
        for uses in ("before", "in"):
            self.assertEqual(self.fractions(Card(False), uses, TRAINYARD_GPU_MEMORY_MIB="20480"), (20480, {0: 0.25}))
        self.assertEqual(self.fractions(Card(False), TRAINYARD_GPU_MEMORY_MIB="20480"), (20480, {}))

    def test_an_error_of_torch_is_a_warning(self):
        with self.assertWarnsRegex(RuntimeWarning, "not kept to 20480 MiB.*busy"):
            got = self.fractions(Card(fails=RuntimeError("busy")), TRAINYARD_GPU_MEMORY_MIB="20480", LOCAL_RANK="1")
        self.assertEqual(got, (20480, {}))

    def test_all_is_left_alone_else(self):
        self.assertEqual(self.fractions(Card()), (None, {}))
        self.assertEqual(self.fractions(Card(), TRAINYARD_GPU_MEMORY_MIB="0"), (None, {}))


class Steps(unittest.TestCase):
    def test_import_brings_nothing(self):
        code, out, err, _ = run("import sys, trainyard; print([m for m in ('torch', 'numpy', 'http.client', 'ssl') "
                                "if m in sys.modules])")
        self.assertEqual((code, out, err), (0, "[]\n", ""))

    def test_without_a_scheduler(self):
        code, out, err, files = run(STEPS.format("time.sleep = lambda s: None"))
        self.assertEqual((code, out, err, files), (0, "go\nend 1000\n", "", ["checkpoints"]))
        code, out, err, files = run(STEPS.format(""), signal.SIGTERM)
        self.assertEqual((code, err, files), (-signal.SIGTERM, "", []), "a signal does what it did")

    def test_stops_where_it_was_asked(self):
        for env, lines in (({"TRAINYARD_JOB_ID": "3"}, True), ({"SLURM_JOB_ID": "3"}, False),
                           ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False)):
            for number in (signal.SIGTERM, signal.SIGUSR1):
                code, out, err, files = run(STEPS.format(""), number, **env)
                self.assertEqual((code, err, files), (75, "", ["checkpoints"]), out)
                self.assertEqual("TRAINYARD saved step=" in out and out.endswith("TRAINYARD ready\n"), lines, out)
                self.assertNotIn("end", out)

    def test_a_child_dies_of_it(self):
        code, out, err, _ = run("""
            import os, signal, time, trainyard
            with trainyard.job() as ty:
                for i in ty.steps(range(2)):
                    pass
                steps = ty.steps(range(5))
                next(steps)
                read, write = os.pipe()
                child = os.fork()
                if not child:
                    os.write(write, b"up")  # Python drops signals that come while it forks
                    time.sleep(60)
                    os._exit(1)
                os.read(read, 2)
                os.kill(child, signal.SIGTERM)
                print(os.WTERMSIG(os.waitpid(child, 0)[1]), ty.stopping)
            """, TRAINYARD_JOB_ID="1")
        self.assertEqual((code, out.splitlines()[-2:] and [line for line in out.splitlines() if "TRAIN" not in line]),
                         (0, ["15 False"]), err)

    def test_handlers_before_are_called_and_come_back(self):
        code, out, err, _ = run(STEPS.format("signal.signal(signal.SIGTERM, lambda *_: print('mine', flush=True))"),
                                signal.SIGTERM, TRAINYARD_JOB_ID="1")
        self.assertEqual(code, 75, err)
        self.assertIn("mine\n", out)
        before = signal.getsignal(signal.SIGTERM)
        with unittest.mock.patch.dict(os.environ, {"TRAINYARD_JOB_ID": "1"}):
            with contextlib.redirect_stdout(io.StringIO()), trainyard.job() as ty:
                for _ in ty.steps(range(2)):
                    self.assertNotEqual(signal.getsignal(signal.SIGTERM), before)
        self.assertEqual(signal.getsignal(signal.SIGTERM), before)

    def test_outside_of_the_main_thread(self):
        met = []

        def train():
            with warnings.catch_warnings(record=True) as list_:
                warnings.simplefilter("always")
                job = _job.Job({"SLURM_JOB_ID": "1"})
                met.append((len(list(job.steps(range(4)))), [str(w.message) for w in list_]))

        t = threading.Thread(target=train)
        t.start()
        t.join()
        self.assertEqual(met[0][0], 4)
        self.assertIn("outside of the main thread", met[0][1][0])

    def test_a_save_that_fails_is_no_stop(self):
        code, out, err, _ = run(STEPS.format("def bad(*_): raise OSError(28, 'full')\ntrainyard.Checkpoints.save = bad")
                                .replace("\ntrain", "\n    train"), signal.SIGTERM, TRAINYARD_JOB_ID="1")
        self.assertEqual(code, 1, err)
        self.assertNotIn("saved", out)
        self.assertNotIn("ready", out)


class Lines(unittest.TestCase):
    def lines(self, do, **env):
        job = _job.Job({"TRAINYARD_JOB_ID": "1", **env})
        with contextlib.redirect_stdout(io.StringIO()) as out:
            do(job)
        return out.getvalue().splitlines()

    def test_done_after_all_steps(self):
        def all_steps(job):
            for _ in job.steps([1, 2, 3], total=7):
                job.tell(loss=0.25, samples=10)
            job._end(True)

        lines = self.lines(all_steps)
        self.assertEqual(lines[-2:], ["TRAINYARD step=7 total=7 loss=0.25 samples=10", "TRAINYARD done"])

    def test_not_done_before(self):
        def some(job):
            for _ in job.steps(iter([1, 2, 3]), total=7):
                pass
            job._end(True)

        def fails(job):
            list(job.steps([1]))
            job._end(False)

        self.assertNotIn("TRAINYARD done", self.lines(some) + self.lines(fails))

    def test_ten_lines_a_second(self):
        self.assertLess(len(self.lines(lambda job: list(job.steps(range(20_000))))), 30)

    def test_rank_0_alone(self):
        self.assertEqual(self.lines(lambda job: list(job.steps(range(3))), RANK="1", WORLD_SIZE="2"), [])

    def test_figures(self):
        def tells(job):
            for i in job.steps(range(1), total=1):
                job.tell(loss=float("nan"), grad_sqr=-1, samples=1e16, epoch=0.5)

        self.assertEqual(self.lines(tells), ["TRAINYARD step=1 total=1 samples=1e+16 epoch=0.5"])
        with self.assertRaisesRegex(ValueError, "tell: step"):
            _job.Job({}).tell(step=3)

    def test_hostile_variables(self):
        job = _job.Job({"TRAINYARD_JOB_ID": "1", "TRAINYARD_ATTEMPT": "-1", "TRAINYARD_NUM_GPUS": "many",
                        "TRAINYARD_LR_SCALE": "nan", "TRAINYARD_BATCH_GLOBAL": "0", "WORLD_SIZE": "x", "RANK": ""})
        self.assertEqual((job.attempt, job.gpus, job.lr_scale, job.global_batch, job.ranks.count, job.ranks.number),
                         (1, 1, 1.0, None, 1, 0))

    def test_every_and_poll(self):
        saved = []
        job = _job.Job({})
        list(job.steps(range(10), save=lambda: saved.append(job.step), every=4))
        self.assertEqual(saved, [4, 8])
        list(job.steps(range(10), total=13, save=lambda: saved.append(job.step), every=4))
        self.assertEqual(saved, [4, 8, 12, 13])
        with self.assertRaises(ValueError):
            list(job.steps(range(1), every=0))


if __name__ == "__main__":
    unittest.main()
