"""The file of contexts, addresses, and what a client sends."""

import os
import tempfile
import unittest
import unittest.mock

from trainyard import _client, _hosts

FILE = """# by trainyard
current: lab
contexts:
  - name: lab
    command: [ssh, -o, 'a b', "q\\"x", lab, trainyard, connect]
  - name: team
    server: https://gpu.example.org:8443
    token_file: /home/ann/team.token
    ca: /home/ann/team.pem
  - name: day
    state: /home/ann/day.state
  - name: long
    command:
      - ssh
      - 'it''s'
"""


class Contexts(unittest.TestCase):
    def test_reads_what_is_written(self):
        self.assertEqual(_hosts.parse(FILE), {"current": "lab", "contexts": [
            {"name": "lab", "command": ["ssh", "-o", "a b", 'q"x', "lab", "trainyard", "connect"]},
            {"name": "team", "server": "https://gpu.example.org:8443", "token_file": "/home/ann/team.token",
             "ca": "/home/ann/team.pem"},
            {"name": "day", "state": "/home/ann/day.state"},
            {"name": "long", "command": ["ssh", "it's"]}]})
        self.assertEqual(_hosts.parse(""), {"current": "", "contexts": []})

    def test_refuses_more(self):
        for text, where in (("contexts:\n  - name: a\n    command: [a, [b]]\n", ":3: '[a, [b]]'"),
                            ("contexts:\n    state: x\n", ":2: state of no context"), ("current: &a b\n", ":1: '&a b'"),
                            ("{}\n", ":1: '{}'"), ("contexts:\n  - name: a\n    state: |\n", ":3: '|'")):
            with self.assertRaisesRegex(ValueError, __import__("re").escape(where)):
                _hosts.parse(text, "f")

    def test_which(self):
        with tempfile.TemporaryDirectory() as home:
            os.mkdir(os.path.join(home, "trainyard"))
            path = os.path.join(home, "trainyard", "contexts.yaml")
            with open(path, "w") as f:
                f.write(FILE)
            os.chmod(path, 0o600)
            env = {"XDG_CONFIG_HOME": home, "XDG_STATE_HOME": "/st"}
            self.assertEqual(_hosts.default(env).words[0], "ssh")
            self.assertEqual(_hosts.default({**env, "TRAINYARD_CONTEXT": "day"}).path, "/home/ann/day.state")
            self.assertEqual(_hosts.default({**env, "TRAINYARD_STATE": "x"}).path, "x")
            self.assertEqual(_hosts.default({"XDG_CONFIG_HOME": "/no", "XDG_STATE_HOME": "/st"}).path, "/st/trainyard")
            with self.assertRaisesRegex(ValueError, "both set"):
                _hosts.default({"TRAINYARD_STATE": "x", "TRAINYARD_CONTEXT": "y"})
            with self.assertRaisesRegex(ValueError, "no such context: 'nosuch'"):
                _hosts.context("nosuch", env)
            os.chmod(path, 0o620)
            with self.assertRaisesRegex(PermissionError, "others may write it"):
                _hosts.default(env)

    def test_addresses(self):
        for url in ("http://h:1", "https://", "https://a b", "https://u@h", "https://h/x", "ftp://h"):
            with self.subTest(url), self.assertRaises(ValueError):
                _hosts.Server(url)
        s = _hosts.Server("https://[::1]:8443/")
        self.assertEqual((s.host, s.port), ("::1", 8443))
        self.assertEqual(_hosts.Server("https://h").port, 443)
        with self.assertRaises(ValueError):
            _client.Client("https://h", state="x")

    def test_names(self):
        for command, want in ((["/usr/bin/python3", "x"], "python3"), (["./a b!"], "a-b"), (["7"], "job-7"), (["..."], "job")):
            self.assertEqual(_client._name(command), want)


if __name__ == "__main__":
    unittest.main()
