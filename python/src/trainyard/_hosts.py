"""Where a manager is, and how to connect to it."""

import http.client
import os
import re
import socket
import ssl
import stat
import struct
import subprocess
from typing import Any, Dict, List, Optional, Union

Value = Union[str, List[str]]


class Host:
    """A manager that can be asked: ``connection`` opens one connection to it."""

    #: Whether its jobs run on this machine, and may be given variables of this process.
    here = False

    def connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        raise NotImplementedError


class Folder(Host):
    """A manager of this machine, by the control socket of its state folder."""

    here = True

    def __init__(self, path: str) -> None:
        self.path = path

    def connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        return _Made("trainyard", self._socket, timeout)

    def _socket(self, timeout: Optional[float]) -> socket.socket:
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            owner = os.fstat(fd).st_uid
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                s.settimeout(timeout)
                s.connect(f"/proc/self/fd/{fd}/control" if os.path.isdir("/proc/self/fd") else
                          os.path.join(self.path, "control"))
                if hasattr(socket, "SO_PEERCRED"):
                    _, uid, _ = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                    if uid not in (0, owner):
                        raise PermissionError(f"{self.path}: user {uid} listens there, want its owner {owner} or root")
            except BaseException:
                s.close()
                raise
            return s
        finally:
            os.close(fd)


class Server(Host):
    """A manager on the network, by HTTPS."""

    def __init__(self, url: str, token: Optional[str] = None, ca: Optional[str] = None, cert: Optional[str] = None,
                 key: Optional[str] = None) -> None:
        found = re.fullmatch(r"https://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(\d+))?/?", url)
        if found is None:
            raise ValueError(f"server {url!r}, want https://HOST:PORT")
        self.host, self.port, self.token = found[1].strip("[]"), int(found[2] or 443), token
        self.context = ssl.create_default_context(cafile=ca)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        if cert is not None:
            self.context.load_cert_chain(cert, key)

    def connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.context)


class Command(Host):
    """A manager at the other end of a command's stdin and stdout, as of ``ssh lab trainyard connect``."""

    def __init__(self, words: List[str]) -> None:
        self.words = words

    def connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        return _Made("trainyard", self._socket, timeout)

    def _socket(self, timeout: Optional[float]) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(self.words, stdin=theirs.fileno(), stdout=theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.settimeout(timeout)
        return _Piped(ours, process)


class _Piped(socket.socket):
    """A socket whose other end is a process: it is waited for once the socket is closed."""

    def __init__(self, of: socket.socket, process: "subprocess.Popen[bytes]") -> None:
        timeout = of.gettimeout()
        super().__init__(of.family, of.type, of.proto, fileno=of.detach())
        self.settimeout(timeout)
        self._process = process

    def _real_close(self, *args: Any) -> None:
        super()._real_close(*args)  # type: ignore[misc]
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Made(http.client.HTTPConnection):
    """A connection whose socket is made by a function."""

    def __init__(self, host: str, make: Any, timeout: Optional[float]) -> None:
        super().__init__(host)
        self._make, self._within = make, timeout

    def connect(self) -> None:
        self.sock = self._make(self._within)


def default(environ: Dict[str, str]) -> Host:
    """The host that the command line asks where no flag names one."""
    state, name = environ.get("TRAINYARD_STATE"), environ.get("TRAINYARD_CONTEXT")
    if state and name:
        raise ValueError("$TRAINYARD_STATE and $TRAINYARD_CONTEXT are both set, want one")
    if name:
        return context(name, environ)
    if state:
        return Folder(state)
    own = environ.get("TRAINYARD_SOCKET")  # of a job: RUN_DIR/socket, three folders below that of its manager
    if own:
        folder = os.path.normpath(os.path.join(os.path.dirname(own), "..", "..", ".."))
        if os.path.exists(os.path.join(folder, "control")):
            return Folder(folder)
    file = _contexts(environ)
    if file["current"]:
        return context(str(file["current"]), environ)
    above = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(above):
        above = os.path.join(os.path.expanduser("~"), ".local", "state")
    return Folder(os.path.join(above, "trainyard"))


def context(name: str, environ: Dict[str, str]) -> Host:
    """The host that ``trainyard context add`` keeps under a name."""
    for found in _contexts(environ)["contexts"]:
        if found.get("name") != name:
            continue
        if "state" in found:
            return Folder(_text(found, "state"))
        if "command" in found:
            words = found["command"]
            return Command(words if isinstance(words, list) else [words])
        token = None
        if "token_file" in found:
            with open(_text(found, "token_file"), encoding="utf-8") as f:
                token = f.read().strip()
        return Server(_text(found, "server"), token, *(_text(found, key) or None for key in ("ca", "cert", "key")))
    raise ValueError(f"no such context: {name!r}")


def _text(of: Dict[str, Value], key: str) -> str:
    value = of.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"contexts.yaml: {key}: {value!r}, want a text")
    return value


def _contexts(environ: Dict[str, str]) -> Dict[str, Any]:
    """Reads contexts.yaml as the program writes it. A file that others may write is refused: its commands are run."""
    above = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(above):
        above = os.path.join(os.path.expanduser("~"), ".config")
    path = os.path.join(above, "trainyard", "contexts.yaml")
    try:
        with open(path, encoding="utf-8") as f:
            info = os.fstat(f.fileno())
            if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or info.st_uid not in (0, os.getuid()):
                raise PermissionError(f"{path}: others may write it, and its commands are run; want chmod 600")
            text = f.read()
    except FileNotFoundError:
        return {"current": "", "contexts": []}
    return parse(text, path)


_LINE = re.compile(r"(?P<dent> *(?:- )?)(?P<key>[a-z_]+):(?: +(?P<value>.*))?")


def parse(text: str, path: str = "contexts.yaml") -> Dict[str, Any]:
    """Reads what ``trainyard context`` writes: mappings of texts, and lists of texts. ValueError where it is more."""
    file: Dict[str, Any] = {"current": "", "contexts": []}
    last: Optional[Dict[str, Value]] = None
    open_list: Optional[List[str]] = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item = re.fullmatch(r" {4,}- (.*)", line)
        found = _LINE.fullmatch(line.rstrip())
        if item and open_list is not None:
            open_list.append(_scalar(item[1], path, number))
            continue
        if found is None:
            raise ValueError(f"{path}:{number}: {line.strip()!r}, want lines as `trainyard context add` writes them")
        key, value, dent = found["key"], found["value"] or "", found["dent"]
        if not dent:
            if key == "current":
                file["current"] = _scalar(value, path, number)
            continue
        if "-" in dent:
            last = {}
            file["contexts"].append(last)
        if last is None:
            raise ValueError(f"{path}:{number}: {key} of no context")
        open_list = None
        if value.startswith("["):
            last[key] = _flow(value, path, number)
        elif not value:
            last[key] = open_list = []
        else:
            last[key] = _scalar(value, path, number)
    return file


_SCALAR = r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|[^,\[\]{}#'"&*!|>%@`][^,\[\]{}]*"""


def _flow(text: str, path: str, number: int) -> List[str]:
    if not re.fullmatch(rf"\[ *(?:(?:{_SCALAR})(?: *, *(?:{_SCALAR}))*)? *\]", text):
        raise ValueError(f"{path}:{number}: {text!r}, want a list of texts")
    return [_scalar(word, path, number) for word in re.findall(_SCALAR, text[1:-1].strip())]


def _scalar(text: str, path: str, number: int) -> str:
    text = text.strip()
    if text[:1] == "'" and text[-1:] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text[:1] == '"':
        import json
        try:
            return str(json.loads(text))
        except ValueError:
            raise ValueError(f"{path}:{number}: {text!r}, want a text") from None
    if text[:1] in "[{&*!|>%@`":
        raise ValueError(f"{path}:{number}: {text!r}, want a text")
    return text
