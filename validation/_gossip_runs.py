"""An ensemble of games of gossip, played in portions that bound its memory and let it be interrupted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from theory.streams import seed_streams, splitmix
from validation._ensemble import INTERACTIONS_A_CALL
from validation._gossip_kernel import PAIRWISE, Rules, Runs, Team, advance


def of_runs(team: Team, part: slice) -> Team:
    """The team of the runs in `part` only."""
    if len(team.anchor) == 1:
        return team
    return team._replace(anchor=team.anchor[part], crop_weight=team.crop_weight[part])


def start_runs(
    start: np.ndarray,
    team: Team,
    seed: int,
    part: slice,
    steps: np.ndarray,
    unanimous: np.ndarray,
    history: np.ndarray,
) -> Runs:
    """The runs of `part` before their first step; the last three arrays are views that the kernel writes into."""
    numbers = np.arange(part.start, part.stop)
    n_agents, n_labels = start.shape[1:]
    belief = np.full((len(numbers), len(team.disposition), n_labels), 1 / n_labels)  # the manager's stays flat
    belief[:, :n_agents] = start[part] if len(start) > 1 else start
    streams = seed_streams(seed, n_agents, numbers)
    reports = np.empty((len(numbers), len(team.disposition)), np.int16)
    return Runs(belief, streams, splitmix(streams), steps[part], unanimous[part], reports, history[part])


def play_portion(runs: Runs, team: Team, rules: Rules, report: Callable[[int], object]) -> None:
    """Plays runs to their ends; `report` is told how many steps are now settled."""
    updates = 1 if rules.protocol == PAIRWISE else runs.belief.shape[1]
    active = np.arange(len(runs.steps)) if rules.max_steps else np.arange(0)
    settled = 0
    while active.size:
        # A call into compiled code can't be interrupted; an update of 30 labels costs as much as ten word draws.
        n_probes = max(1, INTERACTIONS_A_CALL // (10 * active.size * rules.probe_every * updates))
        advance(active, runs, team, rules, n_probes)
        ended = runs.steps >= rules.max_steps
        if rules.patience:
            ended |= runs.unanimous >= rules.patience
        active = np.flatnonzero(~ended)
        now = int(np.where(ended, rules.max_steps, runs.steps).sum())
        report(now - settled)
        settled = now
