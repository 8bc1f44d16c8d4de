"""A manager, asked by HTTP."""

import datetime
import http.client
import json
import math
import os
import re
import secrets
import shlex
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, cast

from . import _errors, _hosts
from ._documents import Edited, Estimate, Info, Job, Nodes, Usage, Why

# What of the environment a job on this machine is given, as by the command line.
_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
           "VIRTUAL_ENV", "CONDA_PREFIX")
_AGAIN = 0.25  # seconds between two tries
_WAIT = 30  # seconds that one request waits for the end of a job
_SLOW = 60.0  # seconds after which a request is given up


class Client:
    """A manager.

    ``Client()`` asks the one that ``trainyard`` asks: $TRAINYARD_CONTEXT, $TRAINYARD_STATE, that of the job it runs in,
    the context in use, the user's own. ``Client(state=FOLDER)``, ``Client(context="lab")`` and
    ``Client("https://host:8443", token=..., ca=...)`` name one. Errors are of ``trainyard.TrainyardError``.
    """

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None, ca: Optional[str] = None,
                 cert: Optional[str] = None, key: Optional[str] = None, state: Optional[str] = None,
                 context: Optional[str] = None) -> None:
        if sum(name is not None for name in (server, state, context)) > 1:
            raise ValueError("server, state and context: want one of them")
        self.host: _hosts.Host
        if server is not None:
            self.host = _hosts.Server(server, token, ca, cert, key)
        elif state is not None:
            self.host = _hosts.Folder(state)
        elif context is not None:
            self.host = _hosts.context(context, dict(os.environ))
        else:
            self.host = _hosts.default(dict(os.environ))

    def info(self) -> Info:
        """What kind of host it is, and what decides there."""
        return cast(Info, self._ask("GET", "/v1/info"))

    def nodes(self) -> Nodes:
        """Its GPUs or slots, and who is on them."""
        return cast(Nodes, self._ask("GET", "/v1/nodes"))

    def jobs(self, state: Optional[Sequence[str]] = None, user: Optional[str] = None) -> List[Job]:
        """Its jobs, those that are done too, unless states are named."""
        query: List[Tuple[str, str]] = [("state", ",".join(state))] if state else []
        if user is not None:
            query.append(("user", user))
        return cast(List[Job], self._ask("GET", "/v1/jobs?" + urllib.parse.urlencode(query))["jobs"] or [])

    def job(self, job: Union[int, str]) -> Job:
        """A job, by number or name."""
        return cast(Job, self._ask("GET", _path(job)))

    def submit(self, command: Union[Sequence[str], Mapping[str, Any]], *more: Mapping[str, Any],
               key: Optional[str] = None, patience: float = 30, env: Optional[Mapping[str, str]] = None,
               cwd: Optional[str] = None, **keys: Any) -> List[Estimate]:
        """Submits jobs, once, and returns their numbers (``id``), with what is expected of them.

        ``submit(["python", "train.py"], gpus=2)`` submits a command, which may be one text, split as a shell does but
        run without one; keywords are keys of a job file. ``submit({...},
        {...})`` submits mappings of a job file. It asks again for ``patience`` seconds where no manager answers, under
        one key. Unknown: it is not known whether they were submitted; its ``key`` asks again.
        """
        jobs: List[Dict[str, Any]] = [dict(one) for one in ((command,) if isinstance(command, Mapping) else ()) + more]
        if not isinstance(command, Mapping):
            words = shlex.split(command) if isinstance(command, str) else list(command)
            jobs.insert(0, {"command": words, "name": _name(words)})
        for one in jobs:
            one.update(keys)
            if env is not None:
                one["env"] = {**one.get("env", {}), **env}
        body: Dict[str, Any] = {"file": json.dumps({"jobs": jobs}), "dir": cwd or os.getcwd()}
        if self.host.here:
            body["env"] = {name: value for name, value in os.environ.items()
                           if name in _PASSED or name.startswith("LC_")}
        return self._once(body, key or secrets.token_hex(16), patience)

    def wait(self, job: Union[int, str], timeout: Optional[float] = None) -> Job:
        """Waits until a job is done, also with the next manager, and returns it. TimeoutError after ``timeout`` s."""
        end = None if timeout is None else time.monotonic() + timeout
        number = self._number(job)
        while True:
            left = _WAIT if end is None else min(_WAIT, max(math.ceil(end - time.monotonic()), 0))
            try:
                doc = cast(Job, self._ask("GET", f"{_path(number)}/wait?seconds={left}"))
            except (_errors.Busy, _errors.NoManager, _errors.Unknown):
                if end is not None and time.monotonic() >= end:
                    raise
                time.sleep(_AGAIN)
                continue
            if doc["state"] == "done":
                return doc
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"job {number} is {doc['state']}")

    def why(self, job: Union[int, str]) -> Why:
        """Why a job stands as it does, and what would change that."""
        return cast(Why, self._ask("GET", _path(job) + "/why"))

    def logs(self, job: Union[int, str], follow: bool = False, tail: int = -1, attempt: int = 0) -> Iterator[str]:
        """Yields what a job wrote, in pieces; with ``follow`` until it is done, through later attempts and managers."""
        number = self._number(job)
        query = urllib.parse.urlencode({"attempt": attempt, "follow": str(follow).lower(), "tail": tail})
        behind = ""
        while True:
            try:
                for kind, behind, data in self._stream(f"{_path(number)}/logs?{query}", behind):
                    if kind == "end":
                        return
                    yield str(data["text"])
            except (_errors.NoManager, _errors.Busy, _errors.Unknown, http.client.HTTPException, OSError):
                if not follow:
                    raise
            time.sleep(_AGAIN)

    def cancel(self, job: Union[int, str]) -> Job:
        """Ends a job, whatever it does at the moment."""
        return self._change(job, "cancel")

    def pause(self, job: Union[int, str]) -> Job:
        """Takes the GPUs of a job away until it is resumed."""
        return self._change(job, "pause")

    def resume(self, job: Union[int, str]) -> Job:
        """Lets a paused job wait for GPUs again."""
        return self._change(job, "resume")

    def requeue(self, job: Union[int, str]) -> Job:
        """Stops a job, and lets it wait for its turn again."""
        return self._change(job, "requeue")

    def resize(self, job: Union[int, str], least: int, most: int, want: Optional[int] = None) -> Job:
        """Gives a job another range of widths."""
        body = {"gpus_min": least, "gpus_max": most}
        if want is not None:
            body["gpus_want"] = want
        return cast(Job, self._ask("POST", _path(job) + "/resize", body))

    def edit(self, job: Union[int, str], **keys: Any) -> Edited:
        """Changes keys of a job, as those of job files, all of them or none. Says which hold at once."""
        return cast(Edited, self._ask("POST", _path(job) + "/edit", {"keys": json.dumps(keys)}))

    def priority(self, job: Union[int, str], priority: int) -> Edited:
        """Gives a job another priority."""
        return cast(Edited, self._ask("POST", _path(job) + "/priority", {"priority": priority}))

    def usage(self, by: Sequence[str] = ("user",), since: float = 0) -> Usage:
        """What jobs used in the last seconds, 0 = ever, in rows by day, user, group, model or job."""
        query = {"by": ",".join(by)}
        if since > 0:
            start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=since)
            query["from"] = start.isoformat()
        return cast(Usage, self._ask("GET", "/v1/usage?" + urllib.parse.urlencode(query)))

    def _number(self, job: Union[int, str]) -> int:
        """The number of a job: a later one may get its name."""
        return job if isinstance(job, int) else self.job(job)["id"]

    def _change(self, job: Union[int, str], verb: str) -> Job:
        return cast(Job, self._ask("POST", f"{_path(job)}/{verb}"))

    def _once(self, body: Dict[str, Any], key: str, patience: float) -> List[Estimate]:
        end, reached = time.monotonic() + patience, False
        while True:
            try:
                answer = self._ask("POST", "/v1/jobs", body, {"Idempotency-Key": key})
                return cast(List[Estimate], answer["jobs"])
            except _errors.NoManager as e:
                error: _errors.TrainyardError = e
            except (_errors.Busy, _errors.Unknown) as e:
                error, reached = e, reached or isinstance(e, _errors.Unknown) or e.code in ("timeout", "stopped")
            if time.monotonic() + _AGAIN > end:
                if not reached:
                    raise error
                unknown = _errors.Unknown(f"it is not known whether the jobs were submitted: {error}; key {key}")
                unknown.key = key
                raise unknown from error
            time.sleep(_AGAIN)

    def _ask(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None,
             headers: Optional[Mapping[str, str]] = None) -> Any:
        connection, response = self._send(method, path, body, headers or {}, _SLOW)
        try:
            return json.loads(_read(response))
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise _errors.Unknown(f"the answer broke off: {e}") from e
        finally:
            connection.close()

    def _send(self, method: str, path: str, body: Optional[Mapping[str, Any]], headers: Mapping[str, str],
              timeout: Optional[float]) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request and returns a good answer: others are raised."""
        connection = self.host.connection(timeout)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            if isinstance(e, PermissionError):
                raise _errors.Forbidden(str(e)) from e
            raise _errors.NoManager(f"no trainyard runs there: {e}") from e
        try:
            sent = {"Accept": "application/json, text/event-stream, application/problem+json", **headers}
            token = getattr(self.host, "token", None)
            if token:
                sent["Authorization"] = f"Bearer {token}"
            text = None
            if body is not None:
                text, sent["Content-Type"] = json.dumps(body), "application/json"
            connection.request(method, path, text, sent)
            response = connection.getresponse()
            if response.status < 300:
                return connection, response
            raise _problem(response.status, _read(response))
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            raise _errors.Unknown(f"no answer: {e}") from e
        except BaseException:
            connection.close()
            raise

    def _stream(self, path: str, behind: str) -> Iterator[Tuple[str, str, Any]]:
        """Yields kind, number and data of the events of a stream, from behind one."""
        connection, response = self._send("GET", path, None, {"Last-Event-ID": behind} if behind else {}, None)
        try:
            kind, number, data = "message", behind, ""
            for raw in response:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    number = value
                elif name == "data":
                    data = value
                elif not line and data:
                    yield kind, number, json.loads(data)
                    kind, data = "message", ""
        finally:
            connection.close()


def _read(response: http.client.HTTPResponse) -> bytes:
    return response.read()


def _problem(status: int, body: bytes) -> _errors.TrainyardError:
    try:
        doc = json.loads(body)
        more = "".join(f"; {e.get('location')}: {e.get('message')}" for e in doc.get("errors") or [])
        return _errors.of(str(doc.get("code", "")), status, str(doc.get("detail") or doc.get("title")) + more)
    except (ValueError, AttributeError):
        return _errors.of("", status, f"status {status}: {body[:200]!r}")


def _path(job: Union[int, str]) -> str:
    return "/v1/jobs/" + urllib.parse.quote(str(job), safe="")


def _name(words: Sequence[str]) -> str:
    """The name of a job that runs a command: that of its program, as the command line has it."""
    first = words[0] if words else ""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(first)).strip("._-") or "job"
    return "job-" + name if name.isdigit() else name
