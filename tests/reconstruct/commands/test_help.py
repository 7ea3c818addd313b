"""Every command's help has one example, and the examples work as they stand."""

import re
import shlex
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import click
import pytest

from reconstruct.cli import _reconstruct


def commands(group=_reconstruct, path=("reconstruct",)):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())


def example(path):
    examples = re.findall(r"Example: [^\n]+\n\s+(reconstruct .+)", COMMANDS[path].help)
    assert len(examples) == 1, f"{' '.join(path)} has {len(examples)} examples"
    return examples[0]


@pytest.fixture
def receiver():
    """Take any OTLP request; what arrives is another test's business."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_example_works(path, logs, receiver, run):
    line = example(path).split(" && ")[0].split(" > ")[0]
    words = shlex.split(line.replace("http://localhost:4318", receiver))
    done = run(*words[1:])
    assert done.code == 0, done
    if path[-1] == "otlp":
        assert done.err.startswith("exported 3 spans in 1 batch")
    assert done.out or re.search(r"^(exported|wrote) [1-9]", done.err, re.MULTILINE)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_what_a_command_does_in_full_sentences(path):
    text = COMMANDS[path].help.split("\b")[0].strip()
    assert text[0].isupper()
    assert text.endswith((".", ")"))
    assert COMMANDS[path].short_help.endswith(".")
    assert len(COMMANDS[path].short_help) <= 60


def test_every_option_says_what_it_does():
    for path, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{' '.join(path)} {parameter.opts}"
