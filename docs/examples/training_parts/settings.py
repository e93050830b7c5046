"""What is trained: data sets × networks × losses with the strengths that validation chooses among."""

from __future__ import annotations

from dataclasses import dataclass

from .networks import Method, Recipe

SMALL, WIDE = (64,), (256, 256)
#: Rows to train on, to choose by, and (at most) to report on.
SIZES = {
    "satimage": (1000, 1000, 2000),
    "letter": (1000, 1000, 2000),
    "optdigits": (400, 500, 2000),
    "contraceptive": (500, 300, 673),
}


@dataclass(frozen=True)
class Setting:
    """A data set and how its networks are trained."""

    data: str
    recipe: Recipe

    def __str__(self) -> str:
        noise = f", noise {self.recipe.noise:g}" if self.recipe.noise else ""
        return f"{self.data}, {len(self.recipe.layers)} × {self.recipe.layers[0]}{noise}"


SETTINGS = [Setting(data, Recipe(layers)) for data in SIZES for layers in (SMALL, WIDE)]
SETTINGS += [Setting("satimage", Recipe(WIDE, noise=0.3))]

METHODS = [Method("XE"), Method("XE, stopped early"), Method("XE, Laplace"), Method("FL-53")]
METHODS += [Method("mixup", alpha) for alpha in (0.1, 0.4)]
METHODS += [Method("MMCE", weight) for weight in (0.5, 2.0)]
METHODS += [Method("KDE-XE", weight, 0.001) for weight in (0.01, 0.05, 0.1, 0.2)]
METHODS += [Method("KDE-XE", weight, 0.01) for weight in (0.1, 0.2)]
