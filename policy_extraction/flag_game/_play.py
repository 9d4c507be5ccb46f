"""The flag game of [002] among language models."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, real_number, stamp, whole_number
from policy_extraction._toolbox.texts import MANY
from policy_extraction.flag_game._arguments import check_team
from policy_extraction.flag_game._asking import Agent, Asker
from policy_extraction.flag_game._log import CallLog
from policy_extraction.flag_game._prompt_file import FLAG_GAME_002
from policy_extraction.flag_game._prompts import FlagGamePrompts
from policy_extraction.flag_game._protocols import PROTOCOLS, Game, Probe
from policy_extraction.flag_game._result import labelled
from policy_extraction.flag_game._susceptibility import check_alpha

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
    progress: bool = False,
) -> xr.Dataset:
    """One flag game: agents who each see a crop of the same flag tell each other what country's flag it is.

    Source: [002] Section 2.2, Appendices C and D. A step is, by protocol:

    - 'pairwise': a uniformly random ordered pair of distinct agents; one speaks, the other remembers the message.
      Probes are questions of their own, before the first step and after every `probe_every` ones, and leave no trace.
    - 'broadcast': all state a country, see what the others stated, and decide; they remember their own decisions. The
      isolated answers are the first statements, the probes are the decisions.
    - 'manager': all report to a manager without a crop, who decides; all remember its decisions. The isolated answers
      are the first reports, and each round's reports with the decision made of them are a probe.

    Parameters
    ----------
    agents
        N ≥ 2 agents, the same one several times or a mixed team; each has a `name` and a method `complete(system, user,
        *, image_png, max_tokens, temperature, seed)` that returns text, as `OpenAIBackend` and `StandIn` have.
    crops
        What each of them sees, the bytes of N PNG files.
    countries
        The allowed answers, in the order in which they are listed.
    protocol, manager
        As above; the manager is needed in its protocol, and only there.
    m
        Bandwidth: an answer is a country (1), with a clue (2), or with a reason (3).
    alpha
        Adds the line about social evidence for this α in [0, 1], see `susceptibility_line`; None for no line. The
        manager protocol has none.
    rounds
        Rounds at most, ≥ 1: N steps each in the pairwise protocol, where this is the κ of T_max = κN; one step each in
        the others, where it is κN.
    probe_every
        Steps between probes, N by default; pairwise protocol only.
    patience
        The game stops after so many probes in a row with the same answer from all (the manager too, where there is
        one), the isolated answers not counted. None: never early.
    seed
        0 to 2^63 - 1: of who meets whom, and of the calls.
    memory_length
        H, entries that an agent remembers.
    temperature, max_tokens
        Of each call. By default 0.2, and 200 tokens in the pairwise protocol or 250 in the others.
    max_tries
        How often a question is asked, at most, until its answer is one JSON object with exactly the keys of the schema
        and an allowed country. One that is asked again says what was wrong and lists the allowed countries.
    concurrency
        Calls at the same time, where they don't depend on each other.
    prompts
        The prompts.
    truth
        The true country; it does not change the game, and is there for `validation.flag_game.accuracy`.
    log
        A file for every question and answer, refused ones too. If it holds an interrupted game of the same kind, that
        one goes on, and comes to the same end where agents answer as they would have.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset with one `run`, so that games can be joined by `xarray.concat(games, "run")`, over

    - (run, agent): `initial_report`, the isolated answers, and `final_report`, those to the last probe;
    - (run, probe, agent): `report`, all probes at the steps of the coordinate `step`, missing after the end;
    - (run,): `steps` played, `stopped` by consensus, `calls` made, `retries` among them, `truth` where it is given, and
      in the manager protocol its answer `manager_report`;
    - (run, probe), in the manager protocol: `manager_decision`, missing at the start and after the end;
    - (run, agent, source): `messages` got in the pairwise protocol; `influence`, in how many decisions `source` was
      named, in the broadcast protocol.

    Raises
    ------
    InputError
        If an argument is out of range or contradicts another, or `log` holds another game.
    UnparsedError
        If an agent gives no valid answer in `max_tries` tries; `log` keeps what was played.
    StorageError
        If `log` can't be written.

    See Also
    --------
    validation.flag_game.simulate_gossip : agents of known parameters
    validation.flag_game.accuracy : endpoints and accuracies
    """
    countries, agents, crops = tuple(countries), tuple(agents), tuple(crops)
    check_team(agents, crops, countries, protocol, manager)
    whole_number("m", m, 1, 3)
    check_alpha(alpha, protocol)
    if probe_every is not None and protocol != "pairwise":
        raise InputError(
            f"probe_every = {probe_every}: in the {protocol} protocol each round is a probe; expected None"
        )
    if truth is not None and truth not in countries:
        raise InputError(f"truth = {truth!r}: expected one of {', '.join(countries)}")
    probe_every = len(agents) if probe_every is None else probe_every
    max_tokens = MAX_TOKENS[protocol] if max_tokens is None else max_tokens
    limits = {"rounds": rounds, "probe_every": probe_every, "memory_length": memory_length, "max_tokens": max_tokens}
    limits |= {"max_tries": max_tries, "concurrency": concurrency} | (
        {} if patience is None else {"patience": patience}
    )
    for name, value in limits.items():
        whole_number(name, value, 1, MANY)
    whole_number("seed", seed, 0, LARGEST_SEED)
    temperature = real_number("temperature", temperature, least=0)

    players = agents if manager is None else (*agents, manager)
    key = {
        "protocol": protocol,
        "agents": [_identity(agent) for agent in players],
        "crops": [hashlib.sha256(crop).hexdigest() for crop in crops],
        "countries": list(countries),
        "m": int(m),
        "alpha": None if alpha is None else float(alpha),
        "memory_length": int(memory_length),
        "temperature": float(temperature),
        "max_tokens": int(max_tokens),
        "prompts": prompts.name,
        "prompts_sha256": prompts.sha256,
        "seed": int(seed),
    }
    seen = crops if manager is None else (*crops, None)
    asker = Asker(
        players,
        seen,
        countries,
        prompts.retry,
        seed,
        temperature,
        max_tokens,
        max_tries,
        concurrency,
        CallLog(log, key),
    )
    links = np.zeros((len(agents), len(agents)), dtype=np.int64)
    game = Game(asker, prompts, len(agents), m, alpha, rounds, probe_every, memory_length, seed, links)
    last = rounds * len(agents) if protocol == "pairwise" else rounds
    probes, stopped = _play(game, protocol, last, patience, progress)
    result = labelled(probes, stopped, game, protocol, last)
    if truth is not None:
        result["truth"] = ("run", np.array([truth]), {"long_name": "true country"})
    return stamp(
        result,
        "flag_game",
        None,
        protocol=protocol,
        manager=None if manager is None else manager.name,
        m=m,
        alpha=alpha,
        rounds=rounds,
        probe_every=probe_every if protocol == "pairwise" else 1,
        patience=patience,
        memory_length=memory_length,
        temperature=float(temperature),
        max_tokens=max_tokens,
        max_tries=max_tries,
        prompts=prompts.name,
        crops_sha256=hashlib.sha256(b"".join(crops)).hexdigest(),
    )


def _play(game: Game, protocol: str, last: int, patience: int | None, progress: bool) -> tuple[list[Probe], bool]:
    probes, unanimous = [], 0
    with tqdm(total=last, desc=protocol, unit="step", disable=not progress, leave=False) as bar:
        for probe in PROTOCOLS[protocol](game):
            bar.update(probe.step - bar.n)
            probes.append(probe)
            unanimous = unanimous + 1 if probe.step and probe.unanimous() else 0
            if patience is not None and unanimous >= patience:
                return probes, True
    return probes, False


def _identity(agent: Agent) -> str:
    """As far as an agent tells what it is."""
    return str(getattr(agent, "identity", agent.name))
