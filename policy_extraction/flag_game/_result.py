"""The result of a flag game as a Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from policy_extraction.flag_game._protocols import Game, Probe


def labelled(probes: Sequence[Probe], stopped: bool, game: Game, protocol: str, last: int) -> xr.Dataset:
    """The columns that `play` returns; `last` is the last possible step."""
    every = game.probe_every if protocol == "pairwise" else 1
    times = np.minimum(np.arange(-(-last // every) + 1) * every, last)
    reports = np.full((1, len(times), game.n_agents), None, dtype=object)
    reports[0, : len(probes)] = [probe.reports for probe in probes]
    agents = game.asker.agents
    of_run = {
        "steps": (probes[-1].step, {"long_name": "steps played", "units": "steps"}),
        "stopped": (stopped, {"long_name": "stopped by consensus"}),
        "calls": (game.asker.calls, {"long_name": "questions asked", "units": "1"}),
        "retries": (game.asker.retries, {"long_name": "questions asked again", "units": "1"}),
    }
    columns: dict[str, Any] = {name: ("run", np.array([value]), label) for name, (value, label) in of_run.items()}
    for name, probe, label in (
        ("initial_report", probes[0], "isolated answer at the start"),
        ("final_report", probes[-1], "answer at the end"),
    ):
        columns[name] = (("run", "agent"), np.array([probe.reports]), {"long_name": label})
    columns["report"] = (("run", "probe", "agent"), reports, {"long_name": "answer to a probe", "missing": ""})
    if protocol == "manager":
        decisions = np.full((1, len(times)), None, dtype=object)
        decisions[0, : len(probes)] = [probe.decision for probe in probes]
        label = {"long_name": "the manager's answer", "missing": ""}
        columns["manager_decision"] = (("run", "probe"), decisions, label)
        final = np.array([str(probes[-1].decision)])
        columns["manager_report"] = ("run", final, {"long_name": "the manager's answer at the end"})
    else:
        name, label = (
            ("messages", "messages heard") if protocol == "pairwise" else ("influence", "decisions influenced")
        )
        columns[name] = (("run", "agent", "source"), game.links[None], {"long_name": label, "units": "1"})
    return xr.Dataset(
        columns,
        coords={
            "seed": ("run", np.array([game.asker.seed])),
            "agent": np.arange(game.n_agents),
            "model": ("agent", np.array([agent.name for agent in agents[: game.n_agents]])),
            "step": ("probe", times, {"units": "steps"}),
            "n_agents": game.n_agents,
        },
    )
