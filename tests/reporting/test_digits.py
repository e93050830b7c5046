"""Digits that are printed: as many as the interval of a number allows, in pages, tables and text alike."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data import notebook
from calibrant.data.printing import equals, half_width, known, places, pvalue_text, signed
from calibrant.reporting.verdict import gain_digits

NUMBERS = st.floats(-1, 1)


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (0.08972, 0.016, "0.090"),
        (0.08972, 0.0098, "0.0897"),
        (0.26, 0.12, "0.26"),
        (0.5, 0.9, "0.50"),
        (0.0001, 0.016, "<0.001"),
        (0.0, 0.016, "0.000"),
        (-0.0001, 0.016, "0.000"),
        (0.123456789, 1e-9, "0.123457"),
        (0.123456789, 0.0, "0.1235"),
        (0.123456789, math.inf, "0.1235"),
        (math.inf, math.inf, "inf"),
        (math.nan, 0.1, "nan"),
    ],
)
def test_known(value, spread, text):
    assert known(value, spread) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0352, "+0.035"), (-0.0352, "-0.035"), (1e-9, "0.000"), (-1e-9, "0.000"), (np.inf, "+inf")]
)
def test_signed(value, text):
    assert signed(value, 0.02) == text


@pytest.mark.parametrize(
    ("p", "text", "after"),
    [(0.0123, "0.012", "= 0.012"), (4e-51, "<0.001", "< 0.001"), (1, "1.000", "= 1.000"), (math.nan, "–", "= –")],
)
def test_pvalues(p, text, after):
    assert (pvalue_text(p), equals(p)) == (text, after)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_printed_value_lies_in_its_printed_interval(a, b, c):
    low, value, high = sorted((a, b, c))
    spread = half_width(low, high)
    for write in (signed, known):
        said = [float(write(v, spread).lstrip("<")) for v in (low, value, high)]
        assert said[0] <= said[1] + (write is known) * 10.0 ** -places(spread)
        assert said[1] <= said[2] + (write is known) * 10.0 ** -places(spread)
        assert max(abs(x - y) for x, y in zip(said, (low, value, high), strict=True)) <= 10.0 ** -places(spread)


def cells(html):
    return [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", html)]


def test_tables_write_a_number_and_its_interval_alike():
    html = notebook.table(
        {
            "name": ["<a>", "b", "c"],
            "gap": [0.03513, -0.003026, None],
            "gap_low": [0.008234, -0.03162, np.nan],
            "gap_high": [0.06271, 0.02585, np.nan],
            "error": [0.0263, 0.0507, 0.1],
            "error_low": [0.0073, 0.0350, 0.0998],
            "error_high": [0.0657, 0.0963, 0.1002],
            "adjusted": [6e-8, 0.0257, np.nan],
        },
        [True, False, False],
    )
    assert cells(html) == [
        *("&lt;a&gt; *", "+0.035", "+0.008 to +0.063", "", "0.026", "0.007 – 0.066", "&lt;0.001"),
        *("b", "−0.003", "−0.032 to +0.026", "", "0.051", "0.035 – 0.096", "0.026"),
        *("c", "–", "–", "", "0.10000", "0.09980 – 0.10020", "–"),
    ]
    assert html.count("<svg") == 2  # one picture a row, of the first interval, where there is one
    assert html.count("aria-hidden") == 2


def test_drawn_intervals_share_a_scale_that_holds_0():
    first, second, nothing = notebook.strips([0.1, -0.2, np.nan], [0.0, -0.3, np.nan], [0.3, -0.1, np.nan])
    zeros = [float(re.search(r"M([\d.]+) 0V", s).group(1)) for s in (first, second)]
    lines = [[float(v) for v in re.search(r"M([\d.]+) 6H([\d.]+)", s).groups()] for s in (first, second)]
    dots = [float(re.search(r'cx="([\d.]+)"', s).group(1)) for s in (first, second)]
    assert nothing == ""
    assert zeros[0] == zeros[1]
    unit = (lines[0][1] - zeros[0]) / 0.3
    for line, dot, value, ends in zip(lines, dots, (0.1, -0.2), ((0.0, 0.3), (-0.3, -0.1)), strict=True):
        np.testing.assert_allclose((np.array([dot, *line]) - zeros[0]) / unit, [value, *ends], atol=2e-3)
    assert notebook.strips([0.0], [0.0], [0.0]) == [""]
    assert notebook.strips([], [], []) == []


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    p = rng.random(800)
    return (rng.random(800) < p**2).astype(int), p


def test_models_and_groups_print_no_more_than_they_know(rows):
    """Four decimals at most of 800 rows, in pages and text: two digits of what an interval is wide."""
    y, p = rows
    models = cal.compare_models(y, {"as is": p, "squared": p**2}, n_resamples=50, random_state=0)
    groups = cal.subgroup_calibration(y, p, np.where(np.arange(800) % 2, "odd", "even"))
    for found in (models, groups):
        for text in (str(found), found._repr_html_(), found.to_html()):
            words = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.DOTALL)
            numbers = re.findall(r"[+−-]?\d\.\d+(?:e-?\d+)?", words)
            assert numbers
            assert max(len(number.rpartition(".")[2]) for number in numbers) <= 4, (type(found), numbers)
            assert not any("e" in number for number in numbers)
    d = models.of("calibration_error")[0]
    said = [signed(v, half_width(*d.interval)) for v in (d.value, *d.interval)]
    assert f"{said[0]}   {said[1]} to {said[2]}" in re.sub(" {3,}", "   ", str(models))


def test_each_row_of_a_drawn_table_marks_its_own_ideal():
    """A slope of 1 is right, not one of 0; and the mark lies on the scale."""
    slope, intercept = notebook.strips([0.8, 0.1], [0.7, 0.0], [0.9, 0.2], [1.0, 0.0])
    at = [float(re.search(r"M([\d.]+) 0V", s).group(1)) for s in (slope, intercept)]
    (low, high), (start, _) = (
        [float(v) for v in re.search(r"M([\d.]+) 6H([\d.]+)", s).groups()] for s in (slope, intercept)
    )
    assert at[0] > high > low
    assert at[0] - high == pytest.approx((high - low) / 2, abs=0.2)
    assert at[1] == pytest.approx(start, abs=0.2)


@pytest.mark.parametrize(
    ("p", "least", "text"),
    [
        (0.001, 0.001, "≤ 0.001"),
        (0.001, 0.0, "0.001"),
        (0.0, 0.0, "<0.001"),
        (0.00125, 0.00125, "≤ 0.0013"),
        (0.00025, 0.00025, "≤ 0.001"),
    ],
)
def test_the_least_pvalue_of_draws_is_a_bound(p, least, text):
    assert pvalue_text(p, least) == text
    assert cal.calibration_test([0, 1] * 200, [0.95, 0.05] * 200, n_resamples=999).__str__().count("p ≤ 0.001") == 1


def test_gains_have_no_power_of_ten():
    told = {0.0: "0", 1.5e-7: "<0.000001", 2.34e-6: "0.0000023", 0.0084: "0.0084", 0.05: "0.05", 0.2345: "0.234"}
    assert {value: gain_digits(value) for value in told} == told
