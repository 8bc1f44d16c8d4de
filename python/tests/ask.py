"""Asks a manager, which its test kills and starts again meanwhile: ask.py STATE BINARY JOBS."""

import os
import sys
import tempfile
import threading
import time

import trainyard


def refused(error, words, ask):
    try:
        ask()
    except error as e:
        assert words in str(e), (words, e)
    else:
        raise AssertionError(f"no {error.__name__}: {words}")


def main(state, binary, jobs):
    c = trainyard.Client(state=state)
    first = c.submit(["sh", "-c", "echo $WORD; sleep 1; echo end"], patience=120, env={"WORD": "hi"}, name="first")[0]
    followed = []
    follows = threading.Thread(target=lambda: followed.extend(c.logs("first", follow=True)))
    follows.start()
    assert c.wait("first")["outcome"] == "finished"
    follows.join()
    assert "".join(followed) == "hi\nend\n", followed
    assert "".join(c.logs(first["id"], tail=1)) == "end\n"

    print("kill", flush=True)  # its test kills the manager from now on
    ids = []
    for i in range(jobs):
        ids += [e["id"] for e in c.submit({"name": f"k{i}", "command": ["true"]}, key=f"key-{i}", patience=120)]
    assert len(set(ids)) == jobs, ids
    for i, number in enumerate(ids):
        assert c.submit({"name": f"k{i}", "command": ["true"]}, key=f"key-{i}", patience=120)[0]["id"] == number
        assert c.wait(number)["outcome"] == "finished"
    print("leave", flush=True)
    sys.stdin.readline()  # the manager stays from now on
    while True:  # it may still be starting
        try:
            c.info()
            break
        except (trainyard.NoManager, trainyard.Unknown, trainyard.Busy):
            time.sleep(0.1)
    assert [job["name"] for job in c.jobs()] == ["first"] + [f"k{i}" for i in range(jobs)]

    refused(trainyard.Conflict, "the key was used for other jobs", lambda: c.submit(["false"], key="key-0"))
    refused(trainyard.Conflict, "done already", lambda: c.cancel("first"))
    refused(trainyard.NotFound, "no such job", lambda: c.job("no such job?"))
    refused(trainyard.Refused, "gpus -1", lambda: c.submit(["true"], gpus=-1))
    refused(trainyard.NoManager, "no trainyard runs there",
            lambda: trainyard.Client(state=state + ".none").submit(["true"], patience=0))
    long = c.submit(["sleep", "1000"], gpus=1)[0]["id"]
    refused(TimeoutError, "job", lambda: c.wait(long, timeout=0.5))
    for verb in (c.pause, c.resume, c.requeue):
        verb(long)
    edited = c.edit(long, priority=2, grace="2s")
    assert edited["job"]["priority"] == 2 and "priority" in edited["now"]
    for since in (0, 3600):
        rows = c.usage(by=["user", "model"], since=since)["rows"]
        assert sum(row["jobs"] for row in rows) >= jobs, rows
    assert c.priority(long, -1)["job"]["priority"] == -1
    refused(trainyard.TrainyardError, "colour", lambda: c.edit(long, colour="red"))
    assert c.why(long)["job"]["id"] == long and len(c.nodes()["gpus"]) == 2
    c.cancel(long)
    assert c.wait(long)["outcome"] == "cancelled"

    with tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(home, "trainyard"))
        path = os.path.join(home, "trainyard", "contexts.yaml")
        with open(path, "w") as f:
            f.write(f"current: lab\ncontexts:\n  - name: lab\n    command: [{binary}, connect, --state, {state}]\n")
        os.chmod(path, 0o600)
        os.environ["XDG_CONFIG_HOME"] = home
        assert trainyard.Client(context="lab").job("first")["id"] == first["id"]
        assert trainyard.Client().info()["schema"]
    print("well", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
