"""The script that draws every calibrator of the survey on each of its cases."""

import importlib.util
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "survey_gallery.py"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("survey_gallery", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "TO_FIT", 300)
    monkeypatch.setattr(module, "NEW", 200)
    monkeypatch.setattr(module, "TWO_CLASSES", module.TWO_CLASSES[:1])
    monkeypatch.setattr(module, "THREE_CLASSES", module.THREE_CLASSES[:1])
    return module


def test_every_kind_of_picture_and_every_calibrator_is_drawn(script, tmp_path):
    script.every(tmp_path)
    groups = ("one_vs_rest", "all_classes")
    wanted = {f"{case}_maps" for case in script.TWO_CLASSES} | {f"{case}_arrows" for case in script.THREE_CLASSES}
    wanted |= {f"{case}_{kind}_{g}" for case in script.THREE_CLASSES for kind in ("heat", "classwise") for g in groups}
    pictures = {path.stem: matplotlib.image.imread(path) for path in tmp_path.glob("*.png")}
    assert pictures.keys() == wanted
    assert all(np.ptp(picture[..., :3]) == 1 for picture in pictures.values())  # from black to white
    assert len(script.SEVERAL) == 8
