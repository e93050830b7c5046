"""What scripts that write pages of evidence share: data files and the order of a page."""

import sys
from pathlib import Path

# Scripts of docs/examples see their own folder only; data files and tables are those of benchmarks/.
sys.path.append(str(Path(__file__).resolve().parents[3]))
