"""One thread a process: tests run side by side, and the threads of small matrix products would wait for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
