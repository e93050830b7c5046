"""Parts of ``benchmark_page.py``: the data of a run, statistics over distributions, figures and sections."""
