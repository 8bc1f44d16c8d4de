"""A training that saves when it is asked to: trainer.py [--workers HOW] [--late S] [--sigwait] [--linger] [--signal NAME]

It makes a step each 10 ms, with two workers if HOW is fork, spawn or forkserver, and raises if one of them dies, as
PyTorch does of its DataLoader. Asked, it saves once, between steps, and ends with 75.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import threading
import time


def work(queue, number):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as those of PyTorch's DataLoader
    while True:
        queue.put(number)
        time.sleep(0.01)


def rest():
    time.sleep(600)


def say(text):
    os.write(1, f"TRAINYARD {text} rank={os.environ.get('LOCAL_RANK', '-')}\n".encode())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--workers")
    p.add_argument("--late", type=float, default=0)
    p.add_argument("--sigwait", action="store_true")
    p.add_argument("--linger", action="store_true", help="leave a child that inherits the handler and is waited for")
    p.add_argument("--signal", default="TERM")
    c = p.parse_args()
    sig = signal.Signals["SIG" + c.signal]
    asked = []
    if c.sigwait:
        signal.pthread_sigmask(signal.SIG_BLOCK, [sig])
        threading.Thread(target=lambda: asked.append(signal.sigwait([sig])), daemon=True).start()
    elif not c.late:
        signal.signal(sig, lambda *_: asked.append(1))
    workers, queue = [], None
    if c.workers:
        context = multiprocessing.get_context(c.workers)
        queue = context.Queue(4)
        workers = [context.Process(target=work, args=(queue, i), daemon=True) for i in range(2)]
    if c.linger:
        workers = [multiprocessing.get_context("fork").Process(target=rest)]
    for w in workers:
        w.start()
    up = set()
    while queue and len(up) < 2:
        up.add(queue.get())
    began, step = time.monotonic(), 0
    while True:
        if c.late and time.monotonic() - began > c.late:
            c.late = 0
            signal.signal(sig, lambda *_: asked.append(1))
        if queue:
            queue.get()
        if not all(w.is_alive() for w in workers):
            raise RuntimeError("a worker died")
        time.sleep(0.01)
        step += 1
        say(f"step={step}")
        if asked:
            say(f"saved step={step}")
            if c.linger:
                say("ready")
            sys.exit(75)


if __name__ == "__main__":
    main()
