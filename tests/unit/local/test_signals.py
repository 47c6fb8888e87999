"""No signal is lost that comes as a process begins to wait, or that the kernel gives to another of its threads."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal, threading, time
from trainmaster.local.signals import signal_pipe
ends = []
for number in range(100):
    ready, tell = os.pipe()
    process = os.fork()
    if not process:
        with signal_pipe() as wait_for_signal:
            signal.signal(signal.SIGTERM, lambda *_: None)
            if number % 2:  # so that only another thread can get it
                threading.Thread(target=time.sleep, args=[600], daemon=True).start()
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            os.write(tell, b"1")
            wait_for_signal()
            os._exit(0)
    os.read(ready, 1)
    time.sleep(number % 20 * 2e-6)
    os.kill(process, signal.SIGTERM)
    ends.append(os.waitpid(process, 0)[1])
print(ends == [0] * 100, flush=True)
"""


def test_no_signal_is_lost_that_comes_early_or_to_another_thread():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True\n", "")
