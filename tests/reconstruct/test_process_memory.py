"""A limit on a process: what is beyond fails, and afterwards it is as before."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from reconstruct.process_memory import memory_at_most

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")


def test_what_is_beyond_fails_and_the_process_goes_on():
    """In a process of its own."""
    program = (
        "from reconstruct.process_memory import memory_at_most\n"
        "with memory_at_most(100_000_000):\n"
        "    small = bytearray(50_000_000)\n"
        "    try:\n"
        "        large = bytearray(2_000_000_000)\n"
        "    except MemoryError:\n"
        "        print('refused')\n"
        "large = bytearray(400_000_000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("refused\n", "")


def test_a_lower_limit_stays():
    """Whoever started the process may have set one."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (2**33, before[1]))
    try:
        with memory_at_most(2**40):
            assert resource.getrlimit(resource.RLIMIT_DATA) == (2**33, before[1])
        assert resource.getrlimit(resource.RLIMIT_DATA) == (2**33, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
