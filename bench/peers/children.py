"""Server processes of another data loader that is measured (a peer). Each process prints its port
when it serves. It ends when its standard input ends. The program that started it holds the other
end of this pipe, so the process does not outlive that program."""

import atexit
import subprocess
import sys


def start(program, *arguments):
    """Starts a Python program of this folder; returns the port that it prints first."""
    process = subprocess.Popen([sys.executable, program, *map(str, arguments)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    atexit.register(process.kill)
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{program} {arguments} ended before it served")
    return int(line)


def serve(port):
    """The server's side: prints the port, and waits for the end of standard input."""
    print(port, flush=True)
    sys.stdin.read()
