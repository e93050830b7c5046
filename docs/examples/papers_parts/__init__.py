"""The parts of ``docs/papers.md``: what each of the three papers says, and what computes it here."""
