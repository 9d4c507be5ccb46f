"""The probability of each yes/no operation of a model, for all agents and scenes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.toolbox import one_or_several, stamp
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.norms._asking import Probed, probe
from policy_extraction.norms._cells import STANDARDS, Cell, cells_of, check_cells
from policy_extraction.norms._operations import check_arguments
from policy_extraction.norms._prompt_file import NORMS_003
from policy_extraction.norms._prompts import QUESTIONS, NormPrompts
from policy_extraction.norms._scenes import SCENES
from policy_extraction.prompts._template import longest

TABLE = ("scene", "agent", "behaviour", "standard")
LONG_NAMES = {
    "probability": "probability that the operation is true",
    "p_yes": "probability of yes, of the two words",
    "captured_mass": "probability of the two words together, temperature 1",
    "undecided": "width of the interval of the probability",
    "right": "whether the operation is true by the hand-made answer",
    "agreement": "mean probability of the hand-made answer",
    "contrast": "mean probability where the operation is true less that where it is not",
    "mean_mass": "mean captured mass",
}


def probe_operations(
    backend: Backend,
    agents: Iterable[Any],
    behaviours: Mapping[str, Any] | Iterable[Any],
    prompts: NormPrompts = NORMS_003,
    *,
    temperature: float = 1.0,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool | None = None,
) -> xr.Dataset:
    """The probability of each yes/no operation, by agent, behaviour and standard, in hand-made scenes.

    Nothing is drawn. Each question is asked with its two words in both orders, and equal prompts are asked once. A
    cached measurement that was interrupted goes on where it stopped. The texts of the scenes are in
    `policy_extraction/prompts/templates/norms_003_scenes.toml`. Source of the operations: [003] Section 2; the scenes
    and their right answers are ours.

    Parameters
    ----------
    backend
        The model.
    agents
        Two or more agents with name, type, description and prefers, such as `theory.norms.AGENTS`.
    behaviours
        Two or more of 'smoking', 'noise' and 'tipping', such as `theory.norms.BEHAVIOURS`.
    prompts
        The prompts.
    temperature
        Temperature of the softmax over the two words.
    cache
        True to keep answers in the folder `records` of `meanfield.cache_folder()`, False for no cache, or a folder.
        Kept answers serve every temperature.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset over (scene, agent, behaviour, standard) with

    - `probability` that the operation is true, which is the probability of yes or of no by the prompts' `true_if`;
      `p_yes` and `captured_mass` of the two words, both averaged over the orders of the words; `undecided`, the width
      of the interval of the probability, 0 unless the back end only bounds a word;
    - `right`, 1 if the operation is true by the hand-made answer, 0 if it is not, NaN without a right answer;

    and over (operation)

    - `agreement`, the mean probability of the right answer;
    - `contrast`, the mean probability where the operation is true minus the mean where it is not: 0 for a model that
      ignores the scene, 1 for one that is always right; NaN, like `agreement`, without right answers of this kind;
    - `mean_mass`, the mean captured mass.

    Coordinates: `asked` and `situation` (scene), `type` (agent), `kind` (behaviour), and `willing` (agent, behaviour,
    standard), whether the agent likes the standard.

    Raises
    ------
    InputError
        If an argument is not as described.
    ModelError
        If the back end only bounds the probabilities of both words, or leaves prompts without an answer.
    StorageError
        If the cache can't be written. Answers so far are kept.

    See Also
    --------
    operation_probabilities : the table for `theory.norms`

    Examples
    --------
    A model that says yes four times in five, whatever it is asked, has no contrast.

    >>> from policy_extraction.backends import Scores
    >>> from policy_extraction.norms import probe_operations
    >>> from theory.norms import AGENTS, BEHAVIOURS
    >>> class YesMan:
    ...     name, identity, provenance = "yes-man", "", {}
    ...     check = generate = tokens = lambda self, *asked, **options: None
    ...     def score(self, prompts, words):
    ...         n = len(prompts)
    ...         yield Scores(np.arange(n), np.log([[0.8, 0.2]] * n), np.zeros((n, 2), bool))
    >>> probes = probe_operations(YesMan(), AGENTS[6:8], BEHAVIOURS).sel(operation="detect_conflict")
    >>> round(probes["agreement"].item(), 2), abs(round(probes["contrast"].item(), 2))
    (0.6, 0.0)
    """
    check_arguments(backend, prompts, temperature)
    kept = RecordCache(cache)
    agents = one_or_several(agents)
    behaviours = [*behaviours.values()] if isinstance(behaviours, Mapping) else one_or_several(behaviours)
    check_cells(agents, behaviours)
    cells = cells_of(agents, behaviours)
    asked = [scene.asked(cell, prompts) for scene in SCENES for cell in cells]
    backend.check([longest([both.yes_first for both in asked])], prompts.words)
    kept.prepare()
    measured = list(probe(backend, asked, prompts.words, temperature, kept, progress))
    shape = (len(SCENES), len(agents), len(behaviours), len(STANDARDS))
    columns = {name: np.reshape([getattr(one, name) for one in measured], shape) for name in Probed._fields}
    if_yes = np.array([prompts.questions[scene.operation].true_if == "yes" for scene in SCENES])[:, None, None, None]
    columns["probability"] = np.where(if_yes, columns["p_yes"], 1 - columns["p_yes"])
    columns["right"] = np.reshape([_number(scene.answer(cell)) for scene in SCENES for cell in cells], shape)
    result = _labelled(columns, agents, behaviours, cells)
    result = result.assign_coords(model=backend.name)
    return stamp(
        result, "norm_probes", None, prompts=prompts.name, prompts_sha256=prompts.sha256, temperature=float(temperature)
    ).assign_attrs(backend.provenance)


def _number(answer: bool | None) -> float:
    return np.nan if answer is None else float(answer)


def _labelled(
    columns: Mapping[str, np.ndarray], agents: Sequence[Any], behaviours: Sequence[Any], cells: Sequence[Cell]
) -> xr.Dataset:
    willing = np.reshape(["willing" if cell.willing else "unwilling" for cell in cells], columns["p_yes"].shape[1:])
    result = xr.Dataset(
        {name: (TABLE, columns[name]) for name in ("probability", "p_yes", "captured_mass", "undecided", "right")},
        coords={
            "scene": [scene.name for scene in SCENES],
            "asked": ("scene", [scene.operation for scene in SCENES]),
            "situation": ("scene", [scene.situation for scene in SCENES]),
            "agent": [agent.name for agent in agents],
            "type": ("agent", [agent.type for agent in agents]),
            "behaviour": [behaviour.name for behaviour in behaviours],
            "kind": ("behaviour", [behaviour.kind for behaviour in behaviours]),
            "standard": list(STANDARDS),
            "willing": (TABLE[1:], willing),
            "operation": list(QUESTIONS),
        },
    )
    rows = [result["asked"].values == name for name in QUESTIONS]
    judged = [_judged(columns["probability"][row], columns["right"][row]) for row in rows]
    result["agreement"] = ("operation", [agreement for agreement, _ in judged])
    result["contrast"] = ("operation", [contrast for _, contrast in judged])
    result["mean_mass"] = ("operation", [columns["captured_mass"][row].mean() for row in rows])
    for name, text in LONG_NAMES.items():
        result[name].attrs = {"long_name": text, "units": "1"}
    return result


def _judged(probability: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Agreement and contrast."""
    found, refused = probability[right == 1], probability[right == 0]
    agreeing = np.concatenate([found, 1 - refused])
    agreement = float(agreeing.mean()) if agreeing.size else np.nan
    return agreement, float(found.mean() - refused.mean()) if found.size and refused.size else np.nan
