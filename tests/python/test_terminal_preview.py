"""Pictures in terminals: where they are shown, and that nobody else sees the sequences."""

import base64
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
import tiny_ideogram4 as tiny
from generating import (
    command,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
)

NOT_HERE = ("KITTY_WINDOW_ID", "TERM_PROGRAM", "TMUX", "KONSOLE_VERSION")


@pytest.fixture
def on_terminal(built_program, generate, model):  # noqa: F811
    """What a run writes to the terminal that is its standard error."""

    def run(*flags, quiet=False, lines=0, **environment):
        words = command(built_program("octet"), model, generate.out)
        if not quiet:
            words.remove("-q")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80 if lines else 0, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in NOT_HERE}
        process = subprocess.Popen([*words, *map(str, flags)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=slave,
                                   env={**kept, "TERM": "xterm", **environment})
        os.close(slave)
        process.stdin.write(tiny.CAPTION.encode())
        process.stdin.close()
        written = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # all ends of the other side are closed
                break
            if not part:
                break
            written += part
        os.close(master)
        out = process.stdout.read()
        assert process.wait(timeout=60) == 0, written
        assert b"\x1b" not in out
        return written

    return run


def kitty_pictures(written):
    chunks = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", written)
    made = []
    for keys, data in chunks:
        if keys.startswith(b"a=T"):
            made.append([dict(each.split(b"=") for each in keys.split(b",")), b""])
        made[-1][1] += data
    return [(int(keys[b"s"]), int(keys[b"v"]), base64.b64decode(data)) for keys, data in made]


def test_kitty(on_terminal):
    pictures = kitty_pictures(on_terminal(KITTY_WINDOW_ID="1"))
    assert len(pictures) == 3  # two steps and the picture itself
    for width, height, rgb in pictures:
        assert len(rgb) == 3 * width * height
    assert pictures[-1][0] / pictures[-1][1] == pytest.approx(8 / 6, rel=0.02)


def test_sixel(on_terminal):
    written = on_terminal("--show", "sixel")
    assert written.count(b"\x1bPq") == 3 and b"\x1b_G" not in written
    assert on_terminal(TERM="foot").count(b"\x1bPq") == 3


@pytest.mark.parametrize(("flags", "environment"), [
    ((), {}), (("--show", "off"), {"KITTY_WINDOW_ID": "1"}),
    ((), {"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"}), ((), {"TERM": "dumb"}),
])
def test_terminals_that_are_not_known_get_none(on_terminal, flags, environment):
    written = on_terminal(*flags, **environment)
    assert b"\x1b_G" not in written and b"\x1bPq" not in written


@pytest.mark.parametrize(("lines", "rows"), [(0, 16), (50, 16), (10, 8), (2, 1)])
def test_a_picture_leaves_room_for_the_progress(on_terminal, lines, rows):
    written = on_terminal("--show", "kitty", lines=lines)
    assert len(re.findall(rb"a=T[^;]*,r=%d," % rows, written)) == len(kitty_pictures(written)) > 0
    assert b"\x1b[%dA" % rows in written


def test_quiet_shows_none(on_terminal):
    assert on_terminal(quiet=True, KITTY_WINDOW_ID="1") == b""


def test_no_terminal_gets_none(built_program, generate, model):  # noqa: F811
    words = command(built_program("octet"), model, generate.out, ["--show", "kitty"])
    words.remove("-q")
    done = subprocess.run(words, input=tiny.CAPTION, capture_output=True, text=True,
                          env={**os.environ, "KITTY_WINDOW_ID": "1"})
    assert done.returncode == 0 and "\x1b" not in done.stdout + done.stderr
