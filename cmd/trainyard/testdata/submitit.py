"""Plays the calls that submitit 1.5.4 makes of Slurm, as far as they are known: its batch files, how it reads the
answers of sbatch and sacct, and how its jobs requeue themselves by a signal. submitit itself was not run. FOLDER is for
its files.

As "worker" it is what such a batch file runs by srun."""

import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time


def job_id(env):
    first, task = env.get("SLURM_ARRAY_JOB_ID"), env.get("SLURM_ARRAY_TASK_ID")
    return f"{first}_{task}" if first else env["SLURM_JOB_ID"]


class Worker:
    """submitit.core.job_environment and submission, as far as Slurm sees them."""

    def __init__(self, folder, env):
        self.folder, self.env, self.id = folder, env, job_id(env)
        assert env["SLURM_NTASKS"] == "1" and env["SLURM_JOB_NUM_NODES"] == "1", env
        assert env["SLURM_PROCID"] == "0" and env["SLURM_LOCALID"] == "0" and env["SLURM_NODEID"] == "0", env
        self.file = folder / f"{self.id}_submitted.pkl"
        for _ in range(300):  # its submitter renames it once it knows the number
            if self.file.exists():
                break
            time.sleep(0.1)
        self.task = pickle.loads(self.file.read_bytes())
        signal.signal(signal.SIGUSR2, self.checkpoint)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGCONT, lambda *_: None)

    def checkpoint(self, *_):
        self.task["resumed"] = self.task.get("resumed", 0) + 1
        self.file.write_bytes(pickle.dumps(self.task))
        subprocess.check_call(["scontrol", "requeue", self.id], timeout=60)
        sys.exit(-1)

    def result(self):
        kind, value = self.task["kind"], self.task["value"]
        if kind == "long" and not self.task.get("resumed"):
            (self.folder / f"{self.id}_up").touch()
            time.sleep(600)
        if kind == "fails":
            raise ValueError(f"no {value}")
        return value * value, self.task.get("resumed", 0)

    def run(self):
        try:
            outcome = "success", self.result()
        except ValueError as error:
            outcome = "error", repr(error)
        (self.folder / f"{self.id}_0_result.pkl").write_bytes(pickle.dumps(outcome))
        sys.exit(0 if outcome[0] == "success" else 1)


def submit(folder, tasks, time_limit, warn):
    """Hands tasks in as SlurmExecutor does: one job, or an array."""
    several = len(tasks) > 1
    logs = folder / ("%A_%a" if several else "%j")
    lines = {"error": f"{logs}_0_log.err", "gpus-per-node": 1, "job-name": "submitit", "nodes": 1, "ntasks-per-node": 1,
             "open-mode": "append", "output": f"{logs}_0_log.out", "signal": f"USR2@{warn}", "time": time_limit,
             "wckey": "submitit"}
    if several:
        lines["array"] = f"0-{len(tasks) - 1}%3"
    log = folder / ("%A_%a_%t_log" if several else "%j_%t_log")
    text = "#!/bin/bash\n\n# Parameters\n" + "".join(f"#SBATCH --{k}={v}\n" for k, v in sorted(lines.items()))
    text += f"\n# command\nexport SUBMITIT_EXECUTOR=slurm\nsrun --unbuffered --output {log}.out --error {log}.err "
    text += f"{sys.executable} -u {__file__} worker {folder}\n"
    script = folder / f"submission_file_{time.monotonic_ns()}.sh"
    script.write_text(text)
    out = subprocess.check_output(["sbatch", str(script)], shell=False).decode()
    number = re.search(r"job (?P<id>[0-9]+)", out)["id"]
    ids = [f"{number}_{i}" for i in range(len(tasks))] if several else [number]
    for name, task in zip(ids, tasks):
        partial = folder / f"{name}.part"
        partial.write_bytes(pickle.dumps(task))
        partial.rename(folder / f"{name}_submitted.pkl")
    return ids


def states(ids):
    """SlurmInfoWatcher: one line a job, steps passed over, tasks of an array by their ranges."""
    command = ["sacct", "-o", "JobID,State,NodeList", "--parsable2"]
    for number in sorted({name.split("_")[0] for name in ids}):
        command += ["-j", number]
    lines = subprocess.check_output(command, shell=False).decode().splitlines()
    names = lines[0].split("|")
    found = {}
    for line in lines[1:]:
        row = dict(zip(names, line.split("|")))
        number, _, tasks = row["JobID"].partition("_")
        if "." in tasks or "." in number:
            continue
        for span in re.sub(r"[\[\]]|%\d+", "", tasks).split(","):
            low, _, high = span.partition("-")
            for i in range(int(low), int(high or low) + 1) if low else [None]:
                found[number if i is None else f"{number}_{i}"] = row["State"].split(" ")[0]
    return found


def wait(ids):
    while True:
        now = states(ids)
        assert set(ids) <= set(now), (ids, now)
        if not any(now[name] in ("PENDING", "RUNNING", "COMPLETING", "READY", "UNKNOWN") for name in ids):
            return [now[name] for name in ids]
        time.sleep(0.2)


def results(folder, ids):
    return [pickle.loads((folder / f"{name}_0_result.pkl").read_bytes()) for name in ids]


def main(folder):
    assert shutil.which("srun") is not None, "Could not detect 'srun', are you indeed on a slurm cluster?"
    one = submit(folder, [{"kind": "square", "value": 7}], 5, 90)
    array = submit(folder, [{"kind": "square", "value": i} for i in range(5)], 5, 90)
    bad = submit(folder, [{"kind": "fails", "value": 3}], 5, 90)
    assert wait(one + array + bad) == ["COMPLETED"] * 6 + ["FAILED"], states(one + array + bad)
    assert results(folder, one) == [("success", (49, 0))]
    assert results(folder, array) == [("success", (i * i, 0)) for i in range(5)]
    assert results(folder, bad) == [("error", "ValueError('no 3')")]
    # asked to save for others, and warned of its end: both have it requeue itself
    moved = submit(folder, [{"kind": "long", "value": 9}], 5, 90)
    while not (folder / f"{moved[0]}_up").exists():
        time.sleep(0.1)
    subprocess.check_call(["trainyard", "requeue", moved[0]])
    late = submit(folder, [{"kind": "long", "value": 11}], "0:12", 10)
    assert wait(moved + late) == ["COMPLETED"] * 2, states(moved + late)
    got = results(folder, moved + late)
    assert got == [("success", (81, 1)), ("success", (121, 1))], got
    gone = submit(folder, [{"kind": "long", "value": 1}], 5, 90)
    subprocess.check_call(["scancel", gone[0]], shell=False)
    assert wait(gone) == ["CANCELLED"], states(gone)
    print("ok")


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        import os
        Worker(pathlib.Path(sys.argv[2]), dict(os.environ)).run()
    else:
        main(pathlib.Path(sys.argv[1]))
