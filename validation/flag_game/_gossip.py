"""Quantized Simplex Gossip among agents with private evidence: the dynamics of the flag game of [002]."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numba
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, one_of, stamp, whole_number
from theory.streams import seed_streams, splitmix
from validation._engine.ensemble import play_to_end, portions
from validation.flag_game._gossip_kernel import PAIRWISE, Rules, Runs, Team, advance
from validation.flag_game._gossip_team import compatibility_rows, make_team, start_beliefs

PROTOCOLS = ("pairwise", "broadcast", "manager")  # in the order of the kernel's numbers
REPORTS = ("likeliest", "sampled")  # likewise
KAPPA = 16.0  # [002] Appendix E: 16N interactions
PATIENCE = 5  # [002] Section 2.1


def simulate_gossip(
    compatibility: xr.DataArray | np.ndarray,
    *,
    runs: int,
    seed: int,
    uptake: float | Sequence[float],
    bandwidth: float | Sequence[float] = 1,
    rewrite: float | Sequence[float] = 0.0,
    rewrite_map: xr.DataArray | np.ndarray | None = None,
    truth: str | int | Sequence[str] | Sequence[int] | None = None,
    rival: str | int | Sequence[str] | Sequence[int] | None = None,
    protocol: str = "pairwise",
    manager_uptake: float = 1.0,
    grounded: bool = True,
    initial: str | xr.DataArray | np.ndarray | None = None,
    report: str = "likeliest",
    kappa: float = KAPPA,
    probe_every: int | None = None,
    patience: int | None = PATIENCE,
    trajectories: bool = False,
    beliefs: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate flag games: agents who each see a crop of a flag exchange reports of its country.

    Agent i has a belief x_i over K countries, and a crop with the compatibilities p_i; x_i = p_i at the start. A
    speaker sends M, the mean of m labels drawn from its belief [002, Eq. 4]. A listener j rewrites it to (1 - γ_j) M +
    γ_j C_j M / Σ C_j M [Eq. 10], moves to (1 - α_j) x_j + α_j times that [Eq. 5], and multiplies by p_j and normalises
    [Eqs. 6, 11]. Two denominators can vanish, and then the limits hold: a message that C_j sends to nothing is taken
    literally (the limit of C_j + εI); and where α_j = 1 and the message is incompatible with the crop of j, it is
    ignored (the limit of α → 1). Eq. 6 acts at every update: with α = 0 it sharpens x_j towards the countries most
    compatible with the crop.

    A step is, by protocol:

    - 'pairwise': a uniformly random ordered pair of distinct agents, one speaks and the other listens;
    - 'broadcast': all speak, and then each listens to the mean of the others' messages;
    - 'manager': all speak, a manager without a crop listens to the mean of their messages and decides on one country,
      and all listen to this decision, a message of one label. Its belief starts flat, is not anchored and rewrites
      nothing; it decides as it would report.

    Parameters
    ----------
    compatibility
        p, shape (N, K) or (runs, N, K), or a DataArray over (agent, country) and perhaps run; rows sum to 1. Countries
        without names are called '0', '1', …
    runs
        Number of runs, ≥ 1.
    seed
        0 to 2^63 - 1. A run depends only on (seed, N, its number): 1,000 runs are the first 1,000 of 10,000, on any
        number of threads. Probes change only where it stops.
    uptake, bandwidth, rewrite
        α in [0, 1]; m, a whole number from 1, or `math.inf`, where beliefs themselves are sent; γ in [0, 1]. One number
        for all, or one for each of the N agents.
    rewrite_map
        A similarity s of countries, shape (K, K), which makes C_j[k, l] = p_j[k] s[k, l]: a report of l supports the
        countries that resemble l and are compatible with the crop. Or C itself, shape (N, K, K), C[j, k, l] the support
        of k that j takes from a report of l. Needed where γ > 0. A DataArray is over (country, reported), or (agent,
        country, reported). Named countries here, in `compatibility` and in `initial` are matched by name.
    truth
        The true country, by name or number, one for all runs or one for each. It is kept for `accuracy` and does not
        change the runs.
    rival
        R, as `truth`; with both and `trajectories`, m and q of [002] Eq. 8 are recorded.
    protocol, manager_uptake
        As above; α of the manager.
    grounded
        False leaves out Eq. 6: Quantized Simplex Gossip.
    initial
        Beliefs at the start. None: p. 'flat': 1/K. Or an array of the shape of p.
    report
        An agent's answer to a probe: its 'likeliest' country (ties are broken evenly), or one 'sampled' from its
        belief.
    kappa
        A run ends after κN steps, T_max of the paper.
    probe_every
        Steps between probes of all agents. By default N in the pairwise protocol, elsewhere 1.
    patience
        A run stops after so many probes in a row with the same answer from all, the manager included. None: never.
    trajectories, beliefs, progress
        Also return all probes, or the beliefs at the end; show a progress bar.

    Returns
    -------
    Dataset over (run, agent) with `initial_report`, the isolated answer to a probe before any message, and
    `final_report`, the answer to the last probe, both names of countries; `steps` (run), played; `stopped` (run),
    whether by consensus; `truth` (run) if given; `manager_report` (run), at the end, in that protocol. On request
    `report` (run, probe, agent), missing after the end, and `final_belief` (run, agent, country). With a rival `m_path`
    and `q_path` (run, probe), the means over agents of s_i = x_i(T) - x_i(R) and of s_i², NaN after the end.

    Raises
    ------
    InputError
        If an argument is out of range or contradicts another.

    See Also
    --------
    accuracy : endpoints and accuracies of these runs
    policy_extraction.flag_game.play : by language models

    Examples
    --------
    In each of 200 games eight agents see a crop of a flag each, and exchange what they believe:

    >>> crops, truth = validation.flag_game.sample_crops(200, 8, seed=1)
    >>> game = validation.flag_game.simulate_gossip(crops, runs=200, seed=1, uptake=0.5, truth=truth)
    >>> found = validation.flag_game.accuracy(game)
    >>> found["initial_accuracy"].round(2).item(), found["collective_accuracy"].round(2).item()
    (0.5, 0.84)
    """
    rows, countries = compatibility_rows("compatibility", compatibility)
    runs = whole_number("runs", runs, 1)
    if len(rows) not in (1, runs):
        raise InputError(f"compatibility is for {len(rows)} runs: expected one for all or {runs}")
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    n_agents = rows.shape[1]
    one_of("protocol", protocol, PROTOCOLS)
    one_of("report", report, REPORTS)
    if not (isinstance(kappa, (int, float)) and kappa >= 0 and kappa * n_agents <= 2**62):
        raise InputError(f"kappa = {kappa!r}: expected a number of at least 0, with at most 2^62 steps")
    if probe_every is None:
        probe_every = n_agents if protocol == "pairwise" else 1
    rules = Rules(
        protocol=PROTOCOLS.index(protocol),
        report=REPORTS.index(report),
        n_observers=n_agents,
        max_steps=round(kappa * n_agents),
        probe_every=whole_number("probe_every", probe_every, 1, 2**62),
        patience=0 if patience is None else whole_number("patience", patience, 1),
    )
    head = manager_uptake if protocol == "manager" else None
    team = make_team(rows, grounded, rewrite_map, uptake, rewrite, bandwidth, head)
    start = start_beliefs(initial, rows, grounded)
    true_country = _numbers("truth", truth, countries, runs)
    axis = np.stack([true_country, _numbers("rival", rival, countries, runs)], axis=-1)
    if rival is not None and (truth is None or not trajectories):
        raise InputError(f"rival = {rival!r}: expected truth and trajectories=True with it")
    if rival is not None and (axis[:, 0] == axis[:, 1]).any():
        raise InputError(f"rival = {rival!r}: expected another country than truth")
    answers = np.empty((2, runs, len(team.disposition)), np.int16)
    most = -(-rules.max_steps // rules.probe_every)
    history = np.full((runs, most + 1 if trajectories else 0, len(team.disposition)), -1, np.int16)
    paths = np.full((runs, 0 if rival is None else most + 1, 2), np.nan)
    final_belief = np.empty((runs if beliefs else 0, n_agents, len(countries)))
    steps, unanimous = np.zeros((2, runs), np.int64)
    flat = 1 / len(countries)  # the belief of a manager
    with tqdm(total=runs * rules.max_steps, disable=not progress, unit="step", leave=False) as bar:
        for part in portions(runs, start[0].nbytes + history[:1].nbytes, numba.get_num_threads()):
            numbers = np.arange(part.start, part.stop)
            belief = np.full((len(numbers), len(team.disposition), len(countries)), flat)
            belief[:, :n_agents] = start[part] if len(start) > 1 else start
            streams = seed_streams(seed, n_agents, numbers)
            written = (steps[part], unanimous[part], answers[1, part], history[part], axis[part], paths[part])
            state = Runs(belief, streams, splitmix(streams), *written)
            _play_portion(state, team, part, rules, answers[0, part], bar.update)
            if beliefs:
                final_belief[part] = belief[:, :n_agents]
    names = np.array(countries)
    before, after = names[answers[:, :, :n_agents]]
    stopped = (unanimous >= rules.patience) & (rules.patience > 0)
    result = xr.Dataset(
        {
            "initial_report": (("run", "agent"), before, {"long_name": "isolated answer at the start"}),
            "final_report": (("run", "agent"), after, {"long_name": "answer at the end"}),
            "steps": ("run", steps, {"long_name": "steps played", "units": "steps"}),
            "stopped": ("run", stopped, {"long_name": "stopped by consensus"}),
        },
        coords={"run": np.arange(runs), "agent": np.arange(n_agents), "n_agents": n_agents},
    )
    if protocol == "manager":
        result["manager_report"] = ("run", names[answers[1, :, -1]], {"long_name": "the manager's answer at the end"})
    if truth is not None:
        result["truth"] = ("run", names[true_country], {"long_name": "true country"})
    if trajectories:
        said = np.array([*countries, None], dtype=object)[history[:, :, :n_agents]]  # the last one is where -1 points
        result["report"] = (("run", "probe", "agent"), said, {"long_name": "answer to a probe", "missing": ""})
        times = np.minimum(np.arange(most + 1) * rules.probe_every, rules.max_steps)
        result = result.assign_coords(step=("probe", times, {"units": "steps"}))
    if rival is not None:
        result["rival"] = ("run", names[axis[:, 1]], {"long_name": "rival of the true country"})
        for k, (name, text) in enumerate((("m_path", "truth minus rival"), ("q_path", "commitment"))):
            label = {"long_name": f"{text} over time, [002] Eq. 8", "units": "1"}
            result[name] = (("run", "probe"), paths[:, :, k], label)
    if beliefs:
        label = {"long_name": "belief at the end", "units": "1"}
        result["final_belief"] = (("run", "agent", "country"), final_belief, label)
        result = result.assign_coords(country=countries)
    options = {"n_agents": n_agents, "runs": runs, "seed": seed, "protocol": protocol, "grounded": grounded}
    options |= {"uptake": _text(uptake), "bandwidth": _text(bandwidth), "rewrite": _text(rewrite)}
    options["initial"] = initial if isinstance(initial, str) else "compatibility" if initial is None else "given"
    options |= {"manager_uptake": head, "report": report, "kappa": kappa}
    options |= {"probe_every": rules.probe_every, "patience": patience}
    return stamp(result, "gossip", None, **options)


def _numbers(
    name: str, given: str | int | Sequence[str] | Sequence[int] | None, countries: list[str], runs: int
) -> np.ndarray:
    """The country of each run, by number."""
    values = np.asarray(0 if given is None else given).reshape(-1).tolist()
    if len(values) not in (1, runs):
        raise InputError(f"{name} has {len(values)} entries: expected one country, or one for each of {runs} runs")
    numbers = [countries.index(one) if isinstance(one, str) and one in countries else one for one in values]
    for number in numbers:
        if isinstance(number, str):
            raise InputError(f"{name} = {number!r}: expected one of {', '.join(countries)}")
        whole_number(name, number, 0, len(countries) - 1)
    return np.broadcast_to(np.array(numbers, dtype=np.int64), (runs,))


def _text(value: float | Sequence[float]) -> float | str:
    """A number, or numbers as text for attrs."""
    return float(value) if np.ndim(value) == 0 else " ".join(f"{v:g}" for v in np.asarray(value))


def _play_portion(
    runs: Runs, team: Team, part: slice, rules: Rules, isolated: np.ndarray, report: Callable[[int], object]
) -> None:
    """Plays the runs of `part` to their ends, and writes the first answers into `isolated` (run, agent).

    `report` receives how many steps are now settled.
    """
    if len(team.anchor) > 1:
        team = team._replace(anchor=team.anchor[part], crop_weight=team.crop_weight[part])

    def more(active: np.ndarray, n_probes: int) -> None:
        advance(active, runs, team, rules, n_probes)

    more(np.arange(len(runs.steps)), 0)
    isolated[:] = runs.reports

    def ended() -> np.ndarray:
        return (runs.unanimous >= rules.patience) & (rules.patience > 0)

    # A probe follows some steps; an update of 30 labels costs as much as ten word draws.
    cost = 10 * rules.probe_every * (1 if rules.protocol == PAIRWISE else runs.belief.shape[1])
    play_to_end(more, runs.steps, rules.max_steps, cost, ended, report)
