"""What `train_tables.py` and `mixup_laplace.py` share: data, networks and losses, measures."""

import sys
from pathlib import Path

# Scripts of docs/examples see their own folder only; data sets are read by a part of benchmarks/.
sys.path.append(str(Path(__file__).resolve().parents[3]))
