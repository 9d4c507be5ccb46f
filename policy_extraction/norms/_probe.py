"""The probability of each yes/no operation of a model, and the table of operation probabilities that follows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import expect, labelled, one_or_several, stamp
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.measuring._yes_no import probe
from policy_extraction.norms._prompts import NORMS_003, QUESTIONS, STANDARDS, NormPrompts
from policy_extraction.norms._scenes import SCENES, cells_of

LONG_NAMES = {
    "probability": "probability that the operation is true",
    "p_yes": "probability of yes, of the two words",
    "captured_mass": "probability of the two words together, temperature 1",
    "undecided": "width of the interval of the probability",
    "right": "whether the operation is true by the hand-made answer",
    "agreement": "mean probability of the hand-made answer",
    "contrast": "mean probability where the operation is true minus that where it is not",
    "mean_mass": "mean captured mass",
}
WILLING = {True: "willing", False: "unwilling"}
SOURCES = {
    "detect_conflict": "detect_conflict/opposite",
    "detect_abstract": "detect_conflict/abstract",
    "false_conflict": "detect_conflict/same",
    "decide_to_talk": "decide_to_talk/opposite",
    "generate_thought": "has_thought/{held}",
    "identify_chat": "identify_chat/{reminded}",
    "identify_thought": "identify_thought/normative",
    "identify_habit": "identify_thought/habit",
    "consistent": "is_consistent/right",
    "unique": "is_unique/{held}",
    "correct_type": "is_type_right/right",
    "conflict_free": "is_conflict_free/{held}",
    "comply_in_plan": "comply_in_plan/own",
    "comply_in_action": "comply_in_action/own",
    "comply_abstract": "comply_in_action/abstract",
    "abstract": "",
}
"""The scene of each operation, with the label of `held` or `reminded` in braces; '' without a probe."""


def check_arguments(backend: object, prompts: object, temperature: float) -> None:
    """InputError for a wrong back end, wrong prompts or a wrong temperature."""
    if not isinstance(backend, Backend):
        raise InputError(f"backend = {backend!r}: expected a Backend, as open_backend returns one")
    if not isinstance(prompts, NormPrompts):
        raise InputError(f"prompts = {prompts!r}: expected NormPrompts, as load_prompts returns them")
    check_temperature(temperature)


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
    Dataset over (scene, agent, behaviour, standard) with `probability` that the operation is true; `p_yes` and
    `captured_mass` of the two words, means over their orders; `undecided`, the width of the interval of the
    probability, 0 unless the back end only bounds a word; and `right`, 1 if the operation is true by the hand-made
    answer, 0 if it is not, NaN without one. Over (operation): `agreement`, the mean probability of the right answer;
    `contrast`, the mean probability where the operation is true minus the mean where it is not, 0 for a model that
    ignores the scene and 1 for one that is always right; and `mean_mass`. Coordinates: `asked` and `situation` (scene),
    `type` (agent), `kind` (behaviour), and `willing`, whether the agent likes the standard.

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
    cells = cells_of(agents, behaviours)
    asked = [scene.asked(cell, prompts) for scene in SCENES for cell in cells]
    measured = probe(backend, asked, prompts.words, temperature, kept, progress)
    right = [float(np.nan if (answer := scene.answer(cell)) is None else answer) for scene in SCENES for cell in cells]
    operations = [scene.operation for scene in SCENES]
    coords = {
        "scene": [f"{scene.operation}/{scene.situation}" for scene in SCENES],
        "agent": [agent.name for agent in agents],
        "behaviour": [behaviour.name for behaviour in behaviours],
        "standard": list(STANDARDS),
    }
    shape = [len(names) for names in coords.values()]
    columns = {name: column.reshape(shape) for name, column in measured._asdict().items()}
    columns["right"] = np.reshape(right, shape)
    if_yes = np.reshape([prompts.is_true(name, "yes") for name in operations], (-1, 1, 1, 1))
    columns["probability"] = np.where(if_yes, columns["p_yes"], 1 - columns["p_yes"])
    result = labelled({name: (tuple(coords), column, LONG_NAMES[name]) for name, column in columns.items()}, coords)
    result = result.assign_coords(
        asked=("scene", operations),
        situation=("scene", [scene.situation for scene in SCENES]),
        type=("agent", [agent.type for agent in agents]),
        kind=("behaviour", [behaviour.kind for behaviour in behaviours]),
        willing=(tuple(coords)[1:], np.reshape([WILLING[cell.willing] for cell in cells], shape[1:])),
        operation=list(QUESTIONS),
        model=backend.name,
    )
    told = {"prompts": prompts.name, "prompts_sha256": prompts.sha256, "temperature": float(temperature)}
    return stamp(result.merge(_judged(result)), "norm_probes", None, **told).assign_attrs(backend.provenance)


def _judged(probes: xr.Dataset) -> xr.Dataset:
    """Agreement, contrast and captured mass by operation."""
    chance, right = probes["probability"], probes["right"]
    each = xr.Dataset(
        {
            "agreement": xr.where(right == 1, chance, 1 - chance).where(right.notnull()),
            "true": chance.where(right == 1),
            "false": chance.where(right == 0),
        }
    )
    of = each.groupby("asked").mean(...).rename(asked="operation").sel(operation=list(QUESTIONS))
    mass = probes["captured_mass"].groupby("asked").mean(..., skipna=False).sel(asked=list(QUESTIONS))
    columns = {"agreement": of["agreement"], "contrast": of["true"] - of["false"], "mean_mass": mass}
    return labelled({name: ("operation", column.values, LONG_NAMES[name]) for name, column in columns.items()})


def operation_probabilities(probes: xr.Dataset, unprobed: xr.Dataset) -> xr.Dataset:
    """The operation probabilities for `theory.norms`, from a model's answers in scenes.

    Each is a mean over the agents, behaviours and standards that it applies to. `detect_abstract` is the probability to
    find a conflict with an abstract norm, divided by the one for the norm itself; it is at most 1, and 1 if the model
    never finds any. `comply_in_plan`, `comply_in_action` and `comply_abstract` come from questions whether the agent
    does what its norm asks for. Without a probe are `abstract`, which depends on the norms that a model writes, and
    entries that apply to none of the agents or behaviours.

    Parameters
    ----------
    probes
        Result of `probe_operations`.
    unprobed
        Operation probabilities, such as `theory.norms.default_operations()`, for entries without a probe. The result
        has their dims and labels.

    Returns
    -------
    Dataset with a variable for each of the 16 operations, over the dims of `theory.norms.default_operations`. Their
    attr `source` is 'probed', 'given', or 'probed, given: ' and the given entries.

    Raises
    ------
    InputError
        If `probes` are not probes, or `unprobed` lacks an operation.

    See Also
    --------
    theory.norms.reaction_model : the model that they make

    Examples
    --------
    A model that says yes four times in five. An operation without a probe takes the given value.

    >>> from policy_extraction.backends import Scores
    >>> from policy_extraction.norms import operation_probabilities, probe_operations
    >>> from theory.norms import AGENTS, BEHAVIOURS, default_operations
    >>> class YesMan:
    ...     name, identity, provenance = "yes-man", "", {}
    ...     check = generate = tokens = lambda self, *asked, **options: None
    ...     def score(self, prompts, words):
    ...         n = len(prompts)
    ...         yield Scores(np.arange(n), np.log([[0.8, 0.2]] * n), np.zeros((n, 2), bool))
    >>> found = operation_probabilities(probe_operations(YesMan(), AGENTS[6:8], BEHAVIOURS), default_operations())
    >>> [(round(found[name].item(), 2), found[name].attrs["source"]) for name in ("consistent", "abstract")]
    [(0.8, 'probed'), (0.6, 'given')]
    """
    expect(probes, "norm_probes", "probes")
    if lacking := [name for name in SOURCES if name not in getattr(unprobed, "data_vars", ())]:
        expected = "expected operation probabilities, such as theory.norms.default_operations()"
        raise InputError(f"unprobed lacks {lacking[0]!r}: {expected}")
    result = xr.Dataset(coords=unprobed.coords)
    for name, scene in SOURCES.items():
        table, given = unprobed[name].astype(np.float64), []
        for place in np.ndindex(table.shape):
            labels = {str(dim): str(table[dim].values[k]) for dim, k in zip(table.dims, place, strict=True)}
            chance = _mean(probes, scene, labels) if scene else np.nan
            if name == "detect_abstract":
                other = _mean(probes, SOURCES["detect_conflict"], labels)
                chance = chance / other if np.isnan(other) or chance < other else 1.0
            if np.isnan(chance):
                given.append(" ".join(labels.values()))
            else:
                table.values[place] = chance
        text = "given" if len(given) == table.size else f"probed, given: {', '.join(given)}" if given else "probed"
        result[name] = table.dims, table.values, {"source": text, "units": "1"}
    options = {name: value for name, value in probes.attrs.items() if name.startswith("option_")}
    return stamp(result, "norm_operations").assign_attrs(options, model=str(probes["model"].item()))


def _mean(probes: xr.Dataset, scene: str, labels: Mapping[str, str]) -> float:
    """The mean probability in a scene over what the labels are about; NaN without a probe."""
    about = xr.ones_like(probes["willing"], dtype=bool)
    for dim in ("type", "willing", "kind"):
        if dim in labels:
            about = about & (probes[dim] == labels[dim])
    return float(probes["probability"].sel(scene=scene.format(**labels)).where(about).mean())
