"""The command in this process, or in one whose memory is watched."""

import subprocess
import sys
import unittest.mock

from calibrant.cli import main

WATCH = """
import sys, threading, time
peak = [0]
def watch():
    while True:
        with open("/proc/self/status") as status:
            peak[0] = max(peak[0], *(int(line.split()[1]) for line in status if line.startswith("RssAnon")))
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
sys.argv = ["calibrant", *sys.argv[1:]]
from calibrant.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
sys.stderr.write(str(peak[0]))
"""


def run(capsys, *args):
    """Exit code, standard output and standard error of a call in this process."""
    with unittest.mock.patch.object(sys, "argv", ["calibrant", *map(str, args)]):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
    out = capsys.readouterr()
    return code, out.out, out.err


def watched(*args):
    """Standard output of a call in a process of its own, and the most memory of its own that it had, in MB."""
    done = subprocess.run([sys.executable, "-c", WATCH, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, int(done.stderr.split()[-1]) / 1024
