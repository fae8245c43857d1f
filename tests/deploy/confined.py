"""Sets the system call filter of a systemd unit, and then becomes the program, in the same process.

  confined.py ALLOWED PROGRAM ARGUMENT..    ALLOWED: names of system calls, separated by commas

A call that the unit does not allow ends the program, so that no such call goes unseen. Memory
cannot be made executable, as with MemoryDenyWriteExecute=. If PASSED_SOCKET is the number of a
descriptor, the program gets this descriptor as number 3, where a service manager passes its first.
"""

import contextlib
import mmap
import os
import sys

import pyseccomp

_PROT_EXEC = mmap.PROT_EXEC
_WRITE_AND_EXEC = mmap.PROT_WRITE | mmap.PROT_EXEC


def _deny_executable_memory():
    denied = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for call, bits in (("mmap", _WRITE_AND_EXEC), ("mprotect", _PROT_EXEC)):
        argument = pyseccomp.Arg(2, pyseccomp.MASKED_EQ, bits, bits)
        denied.add_rule(pyseccomp.KILL_PROCESS, call, argument)
    denied.load()


def _allow_only(names):
    allowed = pyseccomp.SyscallFilter(pyseccomp.KILL_PROCESS)
    for name in names:
        # libseccomp may not know a name: systemd also names new calls, and other processors' calls.
        with contextlib.suppress(OSError):
            allowed.add_rule(pyseccomp.ALLOW, name)
    allowed.load()


def main():
    names, program = sys.argv[1].split(","), sys.argv[2:]
    if "PASSED_SOCKET" in os.environ:
        os.dup2(int(os.environ["PASSED_SOCKET"]), 3)
        os.environ["LISTEN_PID"] = str(os.getpid())
    _deny_executable_memory()
    _allow_only(names)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
