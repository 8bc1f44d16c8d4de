"""Has submitit, as it is on PYTHONPATH, run jobs by what sbatch, srun, sacct, scancel and scontrol are in PATH: one
job, an array, one that goes on in a second attempt after each kind of stop, and an error. FOLDER is for its files."""

import pathlib
import subprocess
import sys
import time

import cloudpickle
import submitit
from submitit.helpers import DelayedSubmission


def square(x):
    print("squaring", x)
    return x * x


def fails():
    raise ValueError("no such thing")


class Training:
    """Counts its attempts in what is pickled for the next; the first runs until it is asked to stop."""

    def __init__(self, up):
        self.up, self.attempt, self.step = up, 1, 0

    def __call__(self, last):
        pathlib.Path(self.up).touch()
        while self.step < last:
            self.step += 1
            if self.attempt == 1:
                time.sleep(0.2)
        env = submitit.JobEnvironment()
        assert (env.num_tasks, env.global_rank, len(env.hostnames)) == (1, 0, 1), env
        return self.attempt, self.step

    def checkpoint(self, last):
        self.attempt += 1
        return DelayedSubmission(self, last)


def await_file(path):
    until = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < until, f"{path} is not there after two minutes"
        time.sleep(0.1)


def trained(folder, executor, name, stop):
    """Starts a training, stops it once it runs, and returns its result."""
    up = folder / name
    job = executor.submit(Training(str(up)), 100_000)
    await_file(up)
    stop(job)
    attempt, step = job.result()
    assert (attempt, step) == (2, 100_000), (name, attempt, step)
    until = time.monotonic() + 120
    while job.get_info()["State"] in ("RUNNING", "COMPLETING"):  # its result is there before its end
        assert time.monotonic() < until, job.get_info()
        time.sleep(0.2)
    assert job.get_info()["State"] == "COMPLETED", job.get_info()


def main(folder):
    # what is pickled must not need this file
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    executor = submitit.AutoExecutor(folder=folder / "%j", slurm_max_num_timeout=2)
    assert executor.cluster == "slurm", executor.cluster
    executor.update_parameters(name="ours", timeout_min=5, gpus_per_node=1, tasks_per_node=1,
                               slurm_array_parallelism=2, slurm_signal_delay_s=60)
    one = executor.submit(square, 7)
    assert one.result() == 49 and "squaring 7" in one.stdout(), one.stdout()
    array = executor.map_array(square, range(5))
    assert [job.result() for job in array] == [0, 1, 4, 9, 16]
    assert all("_" in job.job_id and f"squaring {i}" in job.stdout() for i, job in enumerate(array))
    with executor.batch():
        batch = [executor.submit(square, x) for x in (2, 3)]
    assert [job.result() for job in batch] == [4, 9]
    bad = executor.submit(fails)
    assert "ValueError: no such thing" in str(bad.exception()), bad.exception()
    try:
        bad.result()
        raise AssertionError("an error that did not come back")
    except submitit.core.utils.FailedJobError as error:
        assert "no such thing" in str(error)
    two = submitit.SlurmExecutor(folder=folder / "two")
    two.update_parameters(time=5, ntasks_per_node=2, gpus_per_node=1)
    ranks = two.submit(lambda: submitit.JobEnvironment().global_rank)
    assert ranks.results() == [0, 1], ranks.results()
    trained(folder, executor, "requeued", lambda job: subprocess.check_call(["trainyard", "requeue", job.job_id]))
    executor.update_parameters(timeout_min=1, slurm_signal_delay_s=55)
    trained(folder, executor, "late", lambda job: None)
    gone = executor.submit(time.sleep, 600)
    gone.cancel()
    while not gone.done(force_check=True):
        time.sleep(0.2)
    assert gone.state.startswith("CANCELLED"), gone.state
    print(f"submitit {submitit.__version__}: ok")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
