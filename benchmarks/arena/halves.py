"""The data sets, and the half of each: what is chosen looks at one half, what is reported is read on the other.

Data sets that are kin (the same rows, the same objects measured again, the same source) lie in one half, so that what
is chosen has not seen a twin of what it is judged on. The table is fixed; nothing is dealt out at run time.
"""

from __future__ import annotations

from dataclasses import dataclass

HALVES = ("choosing", "reporting")
CHOOSING, REPORTING = HALVES
#: From this many held-out rows on, the rows themselves are the truth.
POOL = 5000
#: Names of scikit-learn's own data sets end so.
SKLEARN = "-sklearn"


@dataclass(frozen=True)
class Family:
    """Data sets that lie in one half together, and why."""

    kin: str
    half: str
    names: tuple[str, ...]
    reason: str


FAMILIES = (
    Family("magic", CHOOSING, ("magic",), "large, two classes"),
    Family("breiman", CHOOSING, ("ring", "twonorm"), "Breiman's simulated twins: normal classes in twenty dimensions"),
    Family("letter", CHOOSING, ("letter",), "large, 26 classes"),
    Family("pictures", CHOOSING, ("satimage", "texture", "segment"), "pixels and patches of photographs"),
    Family("credit", CHOOSING, ("australian", "crx", "german"), "australian and crx are one set of applications"),
    Family("iris", CHOOSING, ("iris", "iris-sklearn"), "the same rows"),
    Family("games", CHOOSING, ("chess", "tic-tac-toe"), "boards of games, noise-free"),
    Family("rules", CHOOSING, ("hayes-roth", "monk-2"), "classes made by a rule from a few codes"),
    Family("pima", CHOOSING, ("pima",), "alone"),
    Family("bupa", CHOOSING, ("bupa",), "alone"),
    Family("splice", CHOOSING, ("splice",), "alone; sixty columns of letters"),
    Family("titanic", CHOOSING, ("titanic",), "alone; 24 distinct rows, hence few scores"),
    Family("movement_libras", CHOOSING, ("movement_libras",), "alone; 15 classes of 24 rows"),
    Family("tae", CHOOSING, ("tae",), "alone"),
    Family("sonar", CHOOSING, ("sonar",), "alone"),
    Family("banana", REPORTING, ("banana",), "large, two classes that overlap"),
    Family("speech", REPORTING, ("phoneme", "vowel"), "spoken vowels; phoneme is large, two classes"),
    Family("mushroom", REPORTING, ("mushroom",), "large, two classes, noise-free"),
    Family(
        "digits",
        REPORTING,
        ("optdigits", "digits-sklearn", "penbased", "led7digit"),
        "scikit-learn's digits are a part of optdigits; penbased is by the same authors; led7digit is simulated",
    ),
    Family("marketing", REPORTING, ("marketing",), "large, nine classes that hardly differ"),
    Family(
        "cancer",
        REPORTING,
        ("wdbc", "breast-cancer-sklearn", "wisconsin", "breast", "mammographic"),
        "wdbc is scikit-learn's breast cancer, wisconsin the same clinic's; breasts in all of them",
    ),
    Family("wine", REPORTING, ("wine", "wine-sklearn"), "the same rows"),
    Family("hearts", REPORTING, ("heart", "saheart"), "heart disease"),
    Family("spambase", REPORTING, ("spambase",), "alone"),
    Family("ionosphere", REPORTING, ("ionosphere",), "alone"),
    Family("vehicle", REPORTING, ("vehicle",), "alone; silhouettes"),
    Family("contraceptive", REPORTING, ("contraceptive",), "alone; classes that hardly differ"),
    Family("housevotes", REPORTING, ("housevotes",), "alone"),
    Family("bands", REPORTING, ("bands",), "alone"),
    Family(
        "cifar",
        REPORTING,
        ("cifar10_lenet5", "cifar10_wideresnet16x4", "cifar100_densenet_bc100"),
        "public image classifiers, for reporting only",
    ),
)

#: Family of each data set.
FAMILY = {name: family for family in FAMILIES for name in family.names}
#: Predictions that are given, in place of rows to train on.
GIVEN = next(family.names for family in FAMILIES if family.kin == "cifar")
#: Data sets that models are trained on.
TABLES = tuple(name for name in FAMILY if name not in GIVEN)
