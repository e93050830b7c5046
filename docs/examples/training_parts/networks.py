"""Networks, losses and one training loop; mixup; a last layer with a Laplace approximation."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from calibrant.torch import DirichletKernelLoss, FocalLoss, MMCELoss

from .data import Part

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Recipe:
    """How every network of a setting is trained, whatever the loss."""

    layers: tuple[int, ...]
    noise: float = 0.0  # standard deviation of what is added to standardised features
    epochs: int = 60
    batch: int = 128
    rate: float = 2e-3

    def network(self, features: int, classes: int) -> nn.Sequential:
        """A multilayer perceptron; its last module is the linear last layer."""
        widths = (features, *self.layers)
        hidden = [m for a, b in itertools.pairwise(widths) for m in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*hidden, nn.Linear(widths[-1], classes))


@dataclass(frozen=True)
class Method:
    """A family, and the strength (γ, λ or α) and bandwidth that validation chooses among."""

    family: str
    strength: float | None = None
    bandwidth: float | str | None = None

    def loss(self) -> Loss:
        """Of logits and targets."""
        xe = nn.CrossEntropyLoss()
        if self.family == "FL-53":
            return FocalLoss("fl-53")
        if self.family == "MMCE":
            penalty: nn.Module = MMCELoss(weight=self.strength)
        elif self.family == "KDE-XE":
            penalty = DirichletKernelLoss(self.bandwidth, weight=self.strength)
        else:
            return xe
        return lambda logits, target: xe(logits, target) + penalty(logits, target)


def train(method: Method, recipe: Recipe, part: Part, seed: int, watched: Part | None = None) -> nn.Sequential:
    """A network; the seed fixes first weights, batches and noise, the same for all methods.

    With rows that are ``watched`` the weights are those of the epoch that had the least log-loss there.
    """
    torch.manual_seed(seed)
    model = recipe.network(part.x.shape[1], int(part.y.max()) + 1)
    best, kept = float("inf"), None
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.rate, fused=True)
    loss = method.loss()
    draws = torch.Generator().manual_seed(seed)
    for _ in range(recipe.epochs):
        for rows in torch.randperm(len(part.y), generator=draws).split(recipe.batch):
            if len(rows) < recipe.batch:
                continue
            x, y = part.x[rows], part.y[rows]
            if recipe.noise:
                x = x + recipe.noise * torch.randn(x.shape, generator=draws)
            optimiser.zero_grad()
            if method.family == "mixup":
                mixup(model, x, y, method.strength).backward()
            else:
                loss(model(x), y).backward()
            optimiser.step()
        if watched is not None and (value := log_loss(model, watched)) < best:
            best, kept = value, copy.deepcopy(model.state_dict())
    if kept is not None:
        model.load_state_dict(kept)
    return model


@torch.no_grad()
def log_loss(model: nn.Module, part: Part) -> float:
    """Mean cross-entropy of rows."""
    return float(cross_entropy(model(part.x), part.y))


def mixup(model: nn.Module, x: Tensor, y: Tensor, alpha: float) -> Tensor:
    """Cross-entropy of convex combinations of pairs of rows and of their outcomes; the share is Beta(α, α)."""
    share = torch.distributions.Beta(alpha, alpha).sample()
    other = torch.randperm(len(y))
    logits = model(share * x + (1 - share) * x[other])
    return share * cross_entropy(logits, y) + (1 - share) * cross_entropy(logits, y[other])


class LastLayerLaplace:
    """A normal posterior of the last layer's weights around those that were trained (Kristiadi et al. 2020).

    The Hessian of the training rows' cross-entropy in the last layer's weights is a sum of
    ``(diag(p) - p pᵀ) ⊗ h hᵀ`` over rows with probabilities p and features h (with a 1 for the bias). It is
    approximated as a Kronecker product of the means of both (Ritter et al. 2018); the prior adds its precision to the
    diagonal. A row's logits are then normal, and its probabilities the mean softmax over draws of them.
    """

    def __init__(self, model: nn.Sequential, part: Part) -> None:
        self.body, self.head = model[:-1], model[-1]
        with torch.no_grad():
            h = self.features(part.x)
            p = torch.softmax(model(part.x), dim=1).double()
            a, self.rows = h.T @ h / len(h), len(h)
            b = torch.diag(p.mean(dim=0)) - p.T @ p / len(p)
            self.a, self.b = torch.linalg.eigh(a), torch.linalg.eigh(b)

    def features(self, x: Tensor) -> Tensor:
        """What the last layer sees, with a 1 for its bias."""
        h = self.body(x).double()
        return torch.cat([h, h.new_ones(len(h), 1)], dim=1)

    @torch.no_grad()
    def log_probs(self, x: Tensor, precision: float, draws: int = 100, seed: int = 0) -> Tensor:
        """Logarithms of mean probabilities, (n, K)."""
        h = self.features(x)
        mean = h @ torch.cat([self.head.weight, self.head.bias[:, None]], dim=1).double().T
        turned = (h @ self.a.eigenvectors).square()
        # Posterior variance of the weights along each pair of eigenvectors.
        variance = 1 / (self.rows * self.a.eigenvalues[:, None] * self.b.eigenvalues.clamp(min=0) + precision)
        spread = (turned @ variance).sqrt()  # of a row's logits along the eigenvectors of b
        noise = torch.randn(draws, mean.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        total = torch.zeros_like(mean)
        for one in noise:
            total += torch.softmax(mean + (spread * one) @ self.b.eigenvectors.T, dim=1)
        return (total / draws).clamp(min=1e-300).log()

    def fitted(self, part: Part) -> float:
        """The prior's precision of least log-loss on rows that were not trained on."""
        grid = [10.0**power for power in range(-3, 4)]
        return min(grid, key=lambda tau: float(cross_entropy(self.log_probs(part.x, tau), part.y)))
