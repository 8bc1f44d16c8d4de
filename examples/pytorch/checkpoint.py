"""Checkpoints that a crash at any moment leaves whole.

A file is what torch.save writes, a zip archive whose checksums are looked at before it is loaded. The two newest stay: the
last one, and the one to fall back on if that is damaged.
"""

import os
import re
import sys
import zipfile

import torch

KEPT = 2
UNFINISHED = "unfinished"
NAME = re.compile(r"step-(\d{9})\.pt")


def file_name(step):
    return f"step-{step:09}.pt"


def save(folder, state):
    """Saves state, of which state["step"] is the number of steps done. Once it returns, a crash of the machine loses no
    work; a crash before that leaves what was saved earlier as it was."""
    os.makedirs(folder, exist_ok=True)
    replace(os.path.join(folder, file_name(state["step"])), lambda f: torch.save(state, f))
    for old in saved(folder)[:-KEPT]:
        os.remove(os.path.join(folder, file_name(old)))


def newest(folder):
    """Returns the newest state in folder that is whole, None if there is none. Damaged files are renamed, with a word on
    stderr: left there they would count among those to keep."""
    for step in reversed(saved(folder)):
        path = os.path.join(folder, file_name(step))
        if whole(path):
            return torch.load(path, map_location="cpu", weights_only=True)
        print(f"train: {path} is damaged; falling back", file=sys.stderr)
        os.rename(path, path + ".damaged")
    return None


def saved(folder):
    """Returns the steps of the checkpoints in folder, ascending."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(int(m[1]) for m in map(NAME.fullmatch, names) if m)


def whole(path):
    """Says whether a file is all that torch.save wrote. torch.load itself does not look at the checksums."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError):
        return False


def replace(path, write):
    """Replaces a file as a whole: who reads it, or comes back after a crash, finds the old content or the new.

    1. write(file) fills a file of another name, which goes to the disk. A run that dies here leaves it there, and the
       next one overwrites it.
    2. The rename puts it in place. It is not durable yet: the name is in memory only.
    3. The sync of the folder makes the name durable.
    """
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, UNFINISHED)
    with open(temporary, "wb") as f:
        write(f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
