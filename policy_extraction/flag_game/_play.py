"""The flag game of [002] among language models."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import instance, one_of, one_or_several, real_number, stamp, whole_number
from policy_extraction._toolbox.bars import hidden
from policy_extraction._toolbox.texts import MANY
from policy_extraction.flag_game._asking import Agent, Asker, check_agent, check_countries, check_crop
from policy_extraction.flag_game._prompts import FLAG_GAME_002, FlagGamePrompts
from policy_extraction.flag_game._protocols import PROTOCOLS, Game, Probe

MAX_TOKENS = {"pairwise": 200, "broadcast": 250, "manager": 250}  # [002] Appendix C
TEMPERATURE = 0.2  # likewise
MEMORY_LENGTH = 8  # likewise


def play(
    agents: Sequence[Agent],
    crops: Sequence[bytes],
    countries: Sequence[str],
    *,
    protocol: str = "pairwise",
    manager: Agent | None = None,
    m: int = 3,
    alpha: float | None = None,
    rounds: int = 16,
    probe_every: int | None = None,
    patience: int | None = 5,
    seed: int,
    memory_length: int = MEMORY_LENGTH,
    temperature: float = TEMPERATURE,
    max_tokens: int | None = None,
    max_tries: int = 3,
    concurrency: int = 1,
    prompts: FlagGamePrompts = FLAG_GAME_002,
    truth: str | None = None,
    log: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """One flag game: agents who each see a crop of the same flag tell each other which country's flag it is.

    Source: [002] Section 2.2, Appendices C and D. The protocol defines a step and the probes of all agents' answers:

    - 'pairwise': of a uniformly random pair of agents one speaks and the other remembers the message. Probes are
      separate questions before the first step and after every `probe_every` steps; agents do not remember them.
    - 'broadcast': all state a country, see the others' statements, and decide; they remember their own decisions. The
      isolated answers are the first statements, and the probes are the decisions.
    - 'manager': all report to a manager without a crop, who decides; all remember its decisions. The isolated answers
      are the first reports, and each round's reports and decision are a probe.

    Parameters
    ----------
    agents
        N ≥ 2 agents, equal or different; each has a `name` and a method `complete(system, user, *, image_png,
        max_tokens, temperature, seed)` that returns text, such as `OpenAIBackend` and `StandIn`.
    crops, countries
        The N PNG files that they see, as bytes, and the allowed answers, in the order of the prompt.
    protocol, manager
        As above; the manager is an agent, needed in its protocol only.
    m
        Bandwidth: an answer is a country (1), with a clue (2), or with a reason (3).
    alpha
        Social-evidence uptake α in [0, 1], which adds a line to prompts, see `FlagGamePrompts`; None for no line. The
        manager protocol has none.
    rounds
        Most rounds, ≥ 1. In the pairwise protocol a round has N steps, and this is κ in the paper's T_max = κN; in the
        others it has one step, and this is κN.
    probe_every
        Steps between probes, N by default; pairwise protocol only.
    patience
        The game stops after so many successive probes with the same answer from all, the manager included; isolated
        answers don't count. None to play all rounds.
    seed, memory_length
        0 to 2^63 - 1, for the pairs and the calls; and H, entries that an agent remembers.
    temperature, max_tokens
        Options of each call. By default 0.2, and 200 tokens in the pairwise protocol or 250 in the others.
    max_tries
        Most times that a question is asked. A valid answer is one JSON object with exactly the keys of the schema and
        an allowed country. A repeated question says what was wrong and lists the allowed countries.
    concurrency
        Independent calls at the same time.
    prompts, truth
        The prompts, and the true country, for `validation.flag_game.accuracy`; it does not change the game.
    log
        A file of all questions and answers, refused ones included. An interrupted game in it goes on from there, to the
        same end if agents give the same answers.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset with one `run`; `xarray.concat(games, "run")` joins games. It has, over

    - (run, agent): `initial_report`, the isolated answers, and `final_report`, the answers to the last probe;
    - (run, probe, agent): `report`, all probes at the steps of the coordinate `step`, missing after the end;
    - (run): `steps` played, `stopped` by consensus, `calls` made, `retries` among them, `truth` if it is given, and in
      the manager protocol its answer `manager_report`;
    - (run, probe), in the manager protocol: `manager_decision`, missing at the start and after the end;
    - (run, agent, source): `messages` got in the pairwise protocol, or `influence`, the number of decisions that name
      `source`, in the broadcast protocol.

    Raises
    ------
    InputError
        If an argument is out of range or contradicts another, or `log` holds another game.
    UnparsedError
        If an agent gives no valid answer in `max_tries` tries; `log` keeps the game so far.
    StorageError
        If `log` can't be written.

    See Also
    --------
    validation.flag_game.simulate_gossip : agents with known parameters
    validation.flag_game.accuracy : endpoints and accuracies

    Examples
    --------
    Two agents see a crop of France alone, and two a crop that is in doubt.

    >>> from policy_extraction.flag_game import StandIn, play
    >>> clear, doubtful = (theory.flag_game.png(np.full((1, 1, 3), shade, np.uint8)) for shade in (0, 255))
    >>> agent = StandIn({clear: [1.0, 0.0], doubtful: [0.4, 0.6]}, ("France", "Peru"), uptake=0.5)
    >>> game = play([agent] * 4, [clear, clear, doubtful, doubtful], agent.countries, seed=1)
    >>> game["initial_report"].values[0].tolist(), game["final_report"].values[0].tolist()
    (['France', 'France', 'Peru', 'Peru'], ['France', 'France', 'France', 'France'])
    """
    countries, agents, crops = (tuple(one_or_several(each)) for each in (countries, agents, crops))
    instance("prompts", prompts, FlagGamePrompts)
    one_of("protocol", protocol, PROTOCOLS)
    if len(agents) < 2:
        raise InputError(f"agents: there are {len(agents)}, expected at least 2")
    if len(crops) != len(agents):
        raise InputError(f"crops: there are {len(crops)}, expected one for each of {len(agents)} agents")
    if (manager is None) == (protocol == "manager"):
        expected = "one agent more" if manager is None else "None"
        raise InputError(f"manager = {getattr(manager, 'name', None)}: expected {expected} in the {protocol} protocol")
    players, seen = (agents, crops) if manager is None else ((*agents, manager), (*crops, None))
    for number, agent in enumerate(players):
        check_agent(f"agent {number}", agent)
    for number, crop in enumerate(crops):
        check_crop(f"crop {number}", crop)
    check_countries(countries)
    whole_number("m", m, 1, 3)
    if alpha is not None:
        real_number("alpha", alpha, least=0, most=1)
        if protocol == "manager":
            raise InputError(f"alpha = {alpha}: there is no such line in the manager protocol; expected None")
    if probe_every is not None and protocol != "pairwise":
        raise InputError(
            f"probe_every = {probe_every}: in the {protocol} protocol each round is a probe; expected None"
        )
    if truth is not None and truth not in countries:
        raise InputError(f"truth = {truth!r}: expected one of {', '.join(countries)}")
    probe_every = len(agents) if probe_every is None else probe_every
    max_tokens = MAX_TOKENS[protocol] if max_tokens is None else max_tokens
    limits = {"rounds": rounds, "probe_every": probe_every, "memory_length": memory_length}
    for name, value in (limits | ({} if patience is None else {"patience": patience})).items():
        whole_number(name, value, 1, MANY)
    rules = {"protocol": protocol, "m": int(m), "alpha": None if alpha is None else float(alpha)}
    rules["memory_length"] = int(memory_length)
    asker = Asker(players, seen, countries, prompts, seed, temperature, max_tokens, max_tries, concurrency, log, rules)
    links = np.zeros((len(agents), len(agents)), dtype=np.int64)
    game = Game(asker, len(agents), m, alpha, rounds, probe_every, memory_length, links)
    last, every = (rounds * len(agents), probe_every) if protocol == "pairwise" else (rounds, 1)
    probes, unanimous, stopped = [], 0, False
    with tqdm(total=last, desc=protocol, unit="step", disable=hidden(progress), leave=False) as bar:
        for probe in PROTOCOLS[protocol](game):
            bar.update(probe.step - bar.n)
            probes.append(probe)
            unanimous = unanimous + 1 if probe.step and probe.unanimous() else 0
            stopped = patience is not None and unanimous >= patience
            if stopped:
                break
    times = np.minimum(np.arange(-(-last // every) + 1) * every, last)
    result = _labelled(probes, stopped, game, protocol, times)
    if truth is not None:
        result["truth"] = ("run", np.array([truth]), {"long_name": "true country"})
    options = {"protocol": protocol, "manager": None if manager is None else manager.name, "m": m, "alpha": alpha}
    options |= {"rounds": rounds, "probe_every": every, "patience": patience, "memory_length": memory_length}
    options |= {"temperature": asker.temperature, "max_tokens": max_tokens, "max_tries": max_tries}
    options |= {"prompts": prompts.name, "crops_sha256": hashlib.sha256(b"".join(crops)).hexdigest()}
    return stamp(result, "flag_game", None, **options)


def _labelled(probes: Sequence[Probe], stopped: bool, game: Game, protocol: str, times: np.ndarray) -> xr.Dataset:
    """The columns that `play` returns; `times` are the steps of all probes that there may be."""
    reports = np.full((1, len(times), game.n_agents), None, dtype=object)
    reports[0, : len(probes)] = [probe.reports for probe in probes]
    of_run = {
        "steps": (probes[-1].step, {"long_name": "steps played", "units": "steps"}),
        "stopped": (stopped, {"long_name": "stopped by consensus"}),
        "calls": (game.asker.calls, {"long_name": "questions asked", "units": "1"}),
        "retries": (game.asker.retries, {"long_name": "questions asked again", "units": "1"}),
    }
    columns: dict[str, Any] = {name: ("run", np.array([value]), label) for name, (value, label) in of_run.items()}
    first, final = np.array([probes[0].reports]), np.array([probes[-1].reports])
    columns["initial_report"] = (("run", "agent"), first, {"long_name": "isolated answer at the start"})
    columns["final_report"] = (("run", "agent"), final, {"long_name": "answer at the end"})
    columns["report"] = (("run", "probe", "agent"), reports, {"long_name": "answer to a probe", "missing": ""})
    if protocol == "manager":
        decisions = np.full((1, len(times)), None, dtype=object)
        decisions[0, : len(probes)] = [probe.decision for probe in probes]
        label = {"long_name": "the manager's answer", "missing": ""}
        columns["manager_decision"] = (("run", "probe"), decisions, label)
        final = np.array([str(probes[-1].decision)])
        columns["manager_report"] = ("run", final, {"long_name": "the manager's answer at the end"})
    else:
        heard = protocol == "pairwise"
        label = {"long_name": "messages heard" if heard else "decisions influenced", "units": "1"}
        columns["messages" if heard else "influence"] = (("run", "agent", "source"), game.links[None], label)
    coords = {
        "seed": ("run", np.array([game.asker.seed])),
        "agent": np.arange(game.n_agents),
        "model": ("agent", np.array([agent.name for agent in game.asker.agents[: game.n_agents]])),
        "step": ("probe", times, {"units": "steps"}),
        "n_agents": game.n_agents,
    }
    return xr.Dataset(columns, coords)
