"""Pages of hostile names: what does not print is spelled out, everywhere, and parts of other pages run nothing."""

import re
import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.printing import printable_spaced

#: A name that turns its characters round, hides some, colours a terminal, is no Unicode, and would run.
EVIL = "a\u202eb\u2066c\u200f\u200bd\ud800\x1b[31m<script>alert(1)</script>\x00"
#: What must not be on a page as it is.
RAW = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff\x00-\x08\x0e-\x1f]")


@pytest.fixture(scope="module")
def shown():
    """Pages and parts of pages, of everything that has names in it."""
    rng = np.random.default_rng(0)
    names = [f"{EVIL}{i}".replace("\ud800", "") for i in range(3)]  # which labels must not have
    p = rng.dirichlet([1, 1, 1], 300)
    y = np.array(names, dtype=object)[[rng.choice(3, p=row) for row in p]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        report = cal.report(y, p, labels=names, title=EVIL)
        subgroups = cal.subgroup_calibration(y == names[0], p[:, 0], by={EVIL: y}, n_resamples=50)
        models = cal.compare_models(y == names[0], {EVIL: p[:, 0], "other": p[:, 1]})
        curve = cal.reliability_curve(y, p, labels=names, notion="classwise")[names[0]]
        fitted = cal.TemperatureScaling().fit(p, y)
        return {
            "report": report.to_html(name=EVIL),
            "part of a report": report._repr_html_(),
            "subgroups": subgroups.to_html(name=EVIL),
            "models": models.to_html(name=EVIL),
            "part of models": models._repr_html_(),
            "diagram": cal.plot.ReliabilityDisplay.from_predictions(y, p, labels=names, name=EVIL).to_html(),
            "part of a curve": curve._repr_html_(),
            "part of a calibrator": fitted._repr_mimebundle_()["text/html"],
        }


NAMES = ["report", "part of a report", "subgroups", "models", "part of models", "diagram", "part of a curve"]
NAMES += ["part of a calibrator"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_print_is_spelled_out(name, shown):
    page = shown[name]
    assert not RAW.search(page), page[RAW.search(page).start() - 80 :][:120]
    assert "<script>alert" not in page
    assert r"\u202e" in page or name == "part of a calibrator"  # which shortens it
    assert page.encode()
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        assert not re.search(r"(?<!\\)(\\\\)*\\u(202[a-e]|206[6-9]|200[b-f]|d8|001b)", data)  # names in it too


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("part")])
def test_parts_of_other_pages_run_nothing(name, shown):
    assert not re.search(r"<script|\son\w+=|javascript:|<iframe|<object|<embed", shown[name], re.IGNORECASE)


def test_spaces_and_lines_stay():
    assert printable_spaced("0.1\u00a0–\u00a00.2 %\u2009x\n\tdé 😀") == "0.1\u00a0–\u00a00.2 %\u2009x\n\tdé 😀"
    assert printable_spaced("a\u202eb\x1bc\u2028d\ud800") == r"a\u202eb\x1bc\u2028d\ud800"
