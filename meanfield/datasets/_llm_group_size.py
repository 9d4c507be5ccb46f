"""The published choice probabilities of four language models ([004])."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import xarray as xr

from meanfield._population.policy_schema import validate_policy
from meanfield.core._space import MemorySpace
from meanfield.datasets._archive import members, unpickle
from meanfield.datasets._fetch import download, find_local
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import chosen

NAME = "q_dicts.zip"
URL = "https://github.com/Ariel-Flint-Ashery/LLM-group-size/raw/HEAD/q_dicts.zip"
SHA256 = "c22c1746cdb10129c16003532ce3ec1b6099448dd4b4803f6fab28019c593f6f"
SPACE = MemorySpace(n_words=2, memory_length=5)

MODELS = ("gpt-4o", "llama31_70B", "phi_4", "QWQ_32B")
PAIRS = {
    191: ("his", "her"),
    102: ("gay", "straight"),
    397: ("she", "he"),
    344: ("White", "Black"),
    1161: ("more", "less"),
    219: ("young", "old"),
    92: ("African", "White"),
    349: ("Mexican", "American"),
    626: ("tall", "short"),
    505: ("woman", "man"),
    410: ("wife", "husband"),
}
LARGEST_TABLE = 2**20  # bytes; the published ones have 42,878
MEMBER = re.compile(r"Q_dict_(?P<model>.+)_ID_(?P<pair>[0-9]{1,9})_-50_100_0\.5tmp_BLANK_False\.pkl")


def llm_group_size(
    path: str | os.PathLike[str] | None = None, *, model: str | None = None, pair: str | None = None
) -> xr.Dataset:
    """Policies of GPT-4o, Llama 3.1 70B, Phi-4 and QwQ-32B for eleven word pairs, as published with [004].

    P(first word) in each of the 1,365 memories of H = 5, at temperature 0.5, averaged over the two orders in which the
    prompt presents the words. The tables of Llama 3.1 and QwQ bear the mark of a nucleus filter, no value between
    2.2e-16 and 0.05 (0.025) or in the mirror image, so they are not the plain softmax of Eq. 9.

    Parameters
    ----------
    path
        `q_dicts.zip`, or a folder that holds it or `llm_group_size/q_dicts.zip`. Such a file is used as it is and may
        hold only some of the tables. Default: the folder in the environment variable MEANFIELD_DATA, then the cache,
        then a download from the upstream repository with a known SHA-256.
    model, pair
        Take this model or pair only, as in "gpt-4o" and "woman/man". The words of one pair are the labels along `word`.

    Returns
    -------
    Dataset with `q` (model, pair, state, word). `model` is the upstream name ("gpt-4o", "llama31_70B", "phi_4",
    "QWQ_32B"), `pair` is "first/second", and `word_label` (pair, word) has the words.

    Raises
    ------
    InputError
        If there is no such model or pair (the message lists those that there are), the file is not found, a download
        differs from the published file, or an archive or table is damaged, incomplete, holds anything but numbers, or
        is larger than 16 MiB (an archive) or 1 MiB (a table).

    See Also
    --------
    smollm2 : policies that need no download

    Examples
    --------
    >>> policies = meanfield.datasets.llm_group_size()  # doctest: +SKIP
    >>> policies["q"].sel(model="gpt-4o", pair="woman/man", state=0).values.round(3)  # doctest: +SKIP
    array([0.501, 0.499])
    """
    found = find_local("llm_group_size", NAME, path) or download(NAME, URL, SHA256)
    tables = _read(found)
    models = [one for one in MODELS if any(one == m for m, _ in tables)]
    pairs = [one for one in PAIRS if any(one == p for _, p in tables)]
    q = np.full((len(models), len(pairs), SPACE.n_states, 2), np.nan)
    for (name, number), first in tables.items():
        q[models.index(name), pairs.index(number)] = np.stack([first, 1 - first], axis=-1)
    policies = xr.Dataset(
        {"q": (("model", "pair", "state", "word"), q, {"long_name": "choice probability", "units": "1"})},
        coords={
            "model": models,
            "pair": ["/".join(PAIRS[number]) for number in pairs],
            "state": np.arange(SPACE.n_states),
            "word": np.arange(2),
            "word_label": (("pair", "word"), np.array([PAIRS[number] for number in pairs])),
        },
        attrs={
            "kind": "policy",
            "memory_length": SPACE.memory_length,
            "temperature": 0.5,
            "source": "Flint et al., Group size effects and collective misalignment in LLM multi-agent systems",
        },
    )
    return chosen(validate_policy(policies, name=str(found)), model=model, pair=pair)


def _read(path: Path) -> dict[tuple[str, int], np.ndarray]:
    """P(first word) by state, for each (model, pair) in the archive."""
    tables: dict[tuple[str, int], np.ndarray] = {}
    for name, content in members(path, MEMBER, LARGEST_TABLE):
        ((model, pair),) = MEMBER.findall(PurePosixPath(name).name)
        subject = model, int(pair)
        if subject[0] not in MODELS or subject[1] not in PAIRS:
            raise InputError(f"{name}: expected one of the models {', '.join(MODELS)} and pairs {sorted(PAIRS)}")
        if subject in tables:
            raise InputError(f"{name}: path = {path} holds this model and pair twice")
        tables[subject] = _by_state(unpickle(content, name), name)
    if not tables:
        raise InputError(f"path = {path}: holds no file named like Q_dict_MODEL_ID_PAIR_-50_100_0.5tmp_BLANK_False.pkl")
    return tables


def _by_state(table: Any, name: str) -> np.ndarray:
    """The upstream key is the memory as bits: my word, partner's word, …, oldest interaction first."""
    texts = isinstance(table, dict) and all(isinstance(key, str) for key in table)
    if not texts or not all(type(value) is float for value in table.values()):
        raise InputError(f"{name}: expected a dict from memories to probabilities")
    first = np.full(SPACE.n_states, np.nan)
    for key, value in table.items():
        if len(key) % 2 or set(key) - {"0", "1"}:
            raise InputError(f"{name}: memory {key!r}, expected an even number of bits")
        own, partner = map(int, key[::2]), map(int, key[1::2])
        first[SPACE.state(list(zip(own, partner, strict=True)))] = value
    if np.isnan(first).any():
        raise InputError(f"{name}: {int(np.isnan(first).sum())} of {SPACE.n_states} memories have no probability")
    return first
