"""Operation probabilities for the reaction model of norm emergence, from probes of a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import expect, stamp

LABELS: Mapping[str, tuple[str, ...]] = {
    "type": ("entrepreneur", "ordinary"),
    "willing": ("willing", "unwilling"),
    "kind": ("injunctive", "descriptive"),
    "held": ("none", "same", "opposed", "abstract"),
    "reminded": ("first", "reminded"),
}


class Source(NamedTuple):
    """The source of an operation's probabilities."""

    dims: tuple[str, ...]
    scene: str  # with the label of `held` or `reminded` in braces; '' without a probe
    over: str = ""  # a scene by whose probability it is divided


SOURCES: Mapping[str, Source] = {
    "detect_conflict": Source(("kind",), "detect_conflict/opposite"),
    "detect_abstract": Source((), "detect_conflict/abstract", over="detect_conflict/opposite"),
    "false_conflict": Source((), "detect_conflict/same"),
    "decide_to_talk": Source(("type", "willing"), "decide_to_talk/opposite"),
    "generate_thought": Source(("held",), "has_thought/{held}"),
    "identify_chat": Source(("kind", "reminded"), "identify_chat/{reminded}"),
    "identify_thought": Source(("kind",), "identify_thought/normative"),
    "identify_habit": Source(("kind",), "identify_thought/habit"),
    "consistent": Source((), "is_consistent/right"),
    "unique": Source(("held",), "is_unique/{held}"),
    "correct_type": Source(("kind",), "is_type_right/right"),
    "conflict_free": Source(("willing", "held"), "is_conflict_free/{held}"),
    "comply_in_plan": Source(("willing",), "comply_in_plan/own"),
    "comply_in_action": Source(("willing",), "comply_in_action/own"),
    "comply_abstract": Source(("willing",), "comply_in_action/abstract"),
    "abstract": Source((), ""),
}


def operation_probabilities(probes: xr.Dataset, unprobed: xr.Dataset | None = None) -> xr.Dataset:
    """The operation probabilities for `theory.norms`, from a model's answers in scenes.

    Each is a mean over the agents, behaviours and standards that it applies to:

    - Detection, talk, the first question of thought and identification, and the four steps of the check use the
      questions of `NormOperations`. `detect_abstract` is the probability to find a conflict with an abstract norm,
      divided by the one for the norm itself; it is at most 1, and 1 if the model never finds any.
    - `comply_in_plan`, `comply_in_action` and `comply_abstract` come from questions whether the agent does what its
      norm asks for. `NormOperations` instead has plans and actions written and then judged.
    - `abstract` has no probe, because it depends on the general norms that a model writes. Neither have entries that
      apply to none of the agents or behaviours, such as those of entrepreneurs if there are none.

    Parameters
    ----------
    probes
        Result of `probe_operations`.
    unprobed
        Operation probabilities for entries without a probe, such as `theory.norms.default_operations()`.

    Returns
    -------
    Dataset with a variable for each of the 16 operations, over the dims of `theory.norms.default_operations`. Their
    attr `source` is 'probed', 'given', or 'probed, given: ' and the given entries.

    Raises
    ------
    InputError
        If `probes` are no probes, or `unprobed` lacks an entry without a probe.

    See Also
    --------
    theory.norms.emergence : the emergence that follows

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
    table = {name: _probabilities(name, source, probes, unprobed) for name, source in SOURCES.items()}
    result = xr.Dataset(table, coords={dim: list(labels) for dim, labels in LABELS.items()})
    return stamp(result, "norm_operations").assign_attrs(
        {name: value for name, value in probes.attrs.items() if name.startswith("option_")},
        model=str(probes["model"].item()),
    )


def _probabilities(name: str, source: Source, probes: xr.Dataset, unprobed: xr.Dataset | None) -> xr.DataArray:
    found = np.full([len(LABELS[dim]) for dim in source.dims], np.nan)
    given = []
    for place, labels in _entries(source.dims):
        found[place] = _mean(source, probes, labels)
        if np.isnan(found[place]):
            found[place] = _given(name, labels, unprobed)
            given.append(" ".join(labels.values()))
    text = "probed" if not given else "given" if len(given) == found.size else f"probed, given: {', '.join(given)}"
    return xr.DataArray(found, dims=source.dims, attrs={"source": text, "units": "1"})


def _entries(dims: tuple[str, ...]) -> Iterator[tuple[tuple[int, ...], dict[str, str]]]:
    for place in product(*(range(len(LABELS[dim])) for dim in dims)):
        yield place, {dim: LABELS[dim][k] for dim, k in zip(dims, place, strict=True)}


def _mean(source: Source, probes: xr.Dataset, labels: Mapping[str, str]) -> float:
    """The probability of an entry; NaN without a probe."""
    if not source.scene:
        return np.nan
    about = xr.ones_like(probes["willing"], dtype=bool)
    for dim in ("type", "willing", "kind"):
        if dim in labels:
            about = about & (probes[dim] == labels[dim])

    def mean(scene: str) -> float:
        return float(probes["probability"].sel(scene=scene.format(**labels)).where(about).mean())

    chance = mean(source.scene)
    if not source.over:
        return chance
    other = mean(source.over)
    if np.isnan(other):
        return np.nan
    return min(chance / other, 1.0) if other > 0 else 1.0


def _given(name: str, labels: Mapping[str, str], unprobed: xr.Dataset | None) -> float:
    entry = f"{name}[{', '.join(labels.values())}]" if labels else name
    if unprobed is None:
        raise InputError(f"unprobed = None: expected operation probabilities, since {entry} has no probe")
    try:
        return float(unprobed[name].sel(labels))
    except (KeyError, TypeError, ValueError, IndexError):
        raise InputError(f"unprobed: {entry} is missing, which has no probe") from None
