"""Confidences in words and numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.llm import stated_confidence

#: The ranges of the directive, in percent, and its terms.
DIRECTIVE = {
    (1, 5): ("almost no chance", "remote"),
    (5, 20): ("very unlikely", "highly improbable"),
    (20, 45): ("unlikely", "improbable", "improbably"),
    (45, 55): ("roughly even chance", "roughly even odds"),
    (55, 80): ("likely", "probable", "probably"),
    (80, 95): ("very likely", "highly probable"),
    (95, 99): ("almost certain", "almost certainly", "nearly certain"),
}


@pytest.mark.parametrize(("ends", "term"), [(ends, term) for ends, terms in DIRECTIVE.items() for term in terms])
@pytest.mark.parametrize("said", ["{}", "It is {}.", "**{}**", " {}\n"])
def test_terms_are_the_middles_of_their_ranges(ends, term, said):
    (found,) = stated_confidence([said.format(term.capitalize())])
    assert found == pytest.approx(sum(ends) / 200, abs=1e-12)


@given(
    st.integers(0, 100),
    st.sampled_from(["{}%", "{} %", "about {} percent", "I am {}% sure.", "{}/100", "{} out of 100"]),
)
def test_numbers_with_a_scale(percent, form):
    assert stated_confidence([form.format(percent)]).tolist() == [percent / 100]


@given(st.lists(st.floats(0, 1).map(lambda p: round(p, 4)), min_size=1, max_size=8))
def test_plain_numbers_up_to_1_are_probabilities(values):
    texts = [f"{value:.4f}" for value in values]
    assert stated_confidence(texts).tolist() == [float(text) for text in texts]
    assert stated_confidence(values).tolist() == values


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8).filter(lambda v: max(v) > 1))
def test_plain_numbers_are_percentages_where_one_is_above_1(values):
    assert stated_confidence([str(v) for v in values]).tolist() == [v / 100 for v in values]


def test_a_fraction_among_percentages_is_on_an_unclear_scale():
    assert np.isnan(stated_confidence(["85", "0.9"])).tolist() == [False, True]
    assert stated_confidence(["85", "0", "1"]).tolist() == [0.85, 0.0, 0.01]


@given(st.lists(st.sampled_from(["0.31", "0.9", "0", "1.00", "95", "3", "80"]), min_size=1, max_size=12))
def test_numbers_on_the_scale_of_fewer_are_unclear(texts):
    values = [float(text) for text in texts]
    below, above = sum(0 < v < 1 for v in values), sum(v > 1 for v in values)
    expected = []
    for v in values:
        if above == 0 or below > above:  # fractions
            expected.append(v if v <= 1 else np.nan)
        else:
            expected.append(v / 100 if v == 0 or v >= 1 else np.nan)
    np.testing.assert_allclose(stated_confidence(texts), expected, atol=1e-15)


@pytest.mark.parametrize(
    ("text", "value"),
    [("50/50", 0.5), ("about 50 / 50", 0.5), ("60/40", 0.6), ("80/20", 0.8), ("20/80", 0.2), ("100/0", 1.0),
     ("50/100", 0.5), ("7/10", 0.7), ("5/5", 1.0), ("50 out of 50", 1.0), ("50-50", np.nan), ("60/30", np.nan)],
)  # fmt: skip
def test_two_numbers_that_add_up_to_100_are_odds(text, value):
    np.testing.assert_allclose(stated_confidence([text]), value, atol=1e-15)


@pytest.mark.parametrize(
    "text",
    ["", None, float("nan"), "I cannot say.", "not likely", "extremely likely", "-0.5", "120%", "80-90%", "11/10",
     "5/0", "101", "between 0.2 and 0.4", "-5 %", "certain", "85 % or 8/10", "1e5", "inf"],
)  # fmt: skip
def test_what_cannot_be_read_is_nan(text):
    assert np.isnan(stated_confidence([text])).all()


def test_words_of_ones_own_come_first():
    assert stated_confidence(["High", "likely"], words={"high": 0.9, "likely": 0.7}).tolist() == [0.9, 0.7]


@pytest.mark.parametrize(
    ("texts", "words", "error"),
    [("85 %", None, TypeError), (["x"], {"x": 2}, ValueError), (["x"], {}, TypeError), (["x"], ["x"], TypeError)],
)
def test_arguments_are_judged(texts, words, error):
    with pytest.raises(error):
        stated_confidence(texts, words=words)
