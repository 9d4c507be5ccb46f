"""An ensemble of games of gossip."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from theory.streams import seed_streams, splitmix
from validation._engine.ensemble import play_to_end
from validation.flag_game._gossip_kernel import PAIRWISE, Rules, Runs, Team, advance


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
    axis: np.ndarray,
    paths: np.ndarray,
) -> Runs:
    """The runs of `part` before their first step; the kernel writes into `steps`, `unanimous`, `history`, `paths`."""
    numbers = np.arange(part.start, part.stop)
    n_agents, n_labels = start.shape[1:]
    belief = np.full((len(numbers), len(team.disposition), n_labels), 1 / n_labels)  # the manager's stays flat
    belief[:, :n_agents] = start[part] if len(start) > 1 else start
    streams = seed_streams(seed, n_agents, numbers)
    reports = np.empty((len(numbers), len(team.disposition)), np.int16)
    of_part = (steps[part], unanimous[part], reports, history[part], axis[part], paths[part])
    return Runs(belief, streams, splitmix(streams), *of_part)


def play_portion(runs: Runs, team: Team, rules: Rules, report: Callable[[int], object]) -> None:
    """Plays runs to their ends; `report` receives how many steps are now settled."""
    updates = 1 if rules.protocol == PAIRWISE else runs.belief.shape[1]

    def more(active: np.ndarray, n_probes: int) -> None:
        advance(active, runs, team, rules, n_probes)

    def ended() -> np.ndarray:
        return (runs.unanimous >= rules.patience) & (rules.patience > 0)

    # A probe follows some steps; an update of 30 labels costs as much as ten word draws.
    cost = 10 * rules.probe_every * updates
    play_to_end(more, runs.steps, rules.max_steps, cost, ended, report)
