"""Runs one row: times everybody, checks every answer, and says who is the fastest peer."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import peers, timing
from .rows import Row

#: A peer's call is not repeated at a size where it would take longer than this, judged by the smaller sizes.
TOO_LONG = 90.0


def run(row: Row, versions: dict[str, str | None], budget: float, known: dict[str, float]) -> dict[str, Any]:
    """One row of the results; ``known`` are seconds a sample of the peers so far, and is updated."""
    y, p = row.arrays()
    calls: dict[str, Any] = {"calibrant": lambda: row.ours(y, p)}
    found: dict[str, dict[str, Any]] = {}
    for peer in row.peers:
        entry: dict[str, Any] = {"remark": peer.remark, "same": peer.same, "counts": peer.counts}
        found[peer.package] = entry
        expected = known.get(_key(row, peer), 0.0) * p.size
        if versions[peer.package] is None:
            entry["status"] = "missing"
        elif expected > TOO_LONG:
            entry["status"] = f"left out: would take about {expected:.0f} s"
        else:
            failure = _fails(peer, y, p)
            if failure:
                entry["status"] = f"failed: {failure}"
            else:
                calls[peer.package] = _bound(peer, y, p)
    results, seconds = timing.medians(calls, budget)
    ours = results["calibrant"]
    for peer in row.peers:
        entry = found[peer.package]
        if peer.package not in seconds:
            continue
        entry["seconds"] = seconds[peer.package]
        known[_key(row, peer)] = seconds[peer.package] / p.size
        reference = row.reference.get(peer.package)
        entry["status"] = _check(ours if reference is None else reference(y, p), results[peer.package], row, peer)
    timed = [k for k, e in found.items() if "seconds" in e and e["counts"]]
    fastest = min(timed, key=lambda k: found[k]["seconds"], default=None)
    out: dict[str, Any] = {
        "row": row.name,
        "wanted": row.wanted,
        "seconds": seconds["calibrant"],
        "value": None if isinstance(ours, tuple) else float(ours),
        "peers": found,
        "fastest": fastest,
        "ratio": seconds["calibrant"] / found[fastest]["seconds"] if fastest else None,
    }
    if row.twin is not None:
        gap, allowed, how = row.twin()
        out["twin"] = f"{'agrees' if gap <= allowed else 'DIFFERS'}: {gap:.1e} from a {how} (allowed {allowed:g})"
    if row.memory is not None:
        out["memory"] = timing.extra_memory(calls["calibrant"])
        out["memory_allowed"] = row.memory
    return out


def _key(row: Row, peer: peers.Peer) -> str:
    return f"{row.name.split(', N =')[0]}: {peer.package}"


def _bound(peer: peers.Peer, y: np.ndarray, p: np.ndarray) -> Any:
    return lambda: peer.call(y, p)


def _fails(peer: peers.Peer, y: np.ndarray, p: np.ndarray) -> str | None:
    """Whether the peer cannot do the work at all, tried on few rows."""
    rows = slice(0, 2000)
    try:
        peer.call(np.ascontiguousarray(y[rows]), np.ascontiguousarray(p[rows]))
    except Exception as error:  # whatever a peer raises is a finding of the comparison, not an end of it
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
    return None


def _check(reference: Any, theirs: Any, row: Row, peer: peers.Peer) -> str:
    """What the comparison of the answers says, in words."""
    if isinstance(theirs, tuple):
        at, rate = theirs
        inner = (at > 0.05) & (at < 0.95)
        ours = np.interp(at[inner], *reference)
        return f"largest distance of the curves on (.05, .95): {np.nanmax(np.abs(ours - rate[inner])):.3f}"
    gap = abs(float(reference) - float(theirs))
    if not peer.same:
        return f"theirs {float(theirs):.5f}, ours {float(reference):.5f}"
    allowed = row.tolerance if peer.tolerance is None else peer.tolerance
    return f"{'agrees' if gap <= allowed else 'DIFFERS'}: {gap:.1e} (allowed {allowed:g})"
