"""Policies that come with the package, for use without a language model."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
import xarray as xr

from meanfield._population.policy_schema import validate_policy
from meanfield.toolbox._files import load
from meanfield.toolbox._labels import chosen

FILE = "smollm2.nc"


def smollm2(*, pair: str | None = None) -> xr.Dataset:
    """Policies of SmolLM2-135M-Instruct for the eleven word pairs of [004], H = 5, T = 0.5, both orders averaged.

    `policy_extraction.extract` measured them in float32 with the prompt `naming-game-004/1`; the attrs record the
    versions. `python -m policy_extraction.rebuild_gallery` measures them again and compares.

    Parameters
    ----------
    pair
        Take this pair only, as in "his/her"; its words are the labels along `word`, which are numbers for all pairs.

    Returns
    -------
    Policies with `q` (pair, state, word) and the record behind them: `log_probability` (pair, order, state, word),
    rounded to float32, `censored` (nowhere), `captured_mass` (pair, order, state), coordinates `order_label` and
    `word_tokens`. `policy_extraction.policy_from_record` derives policies for other ways of sampling.

    Raises
    ------
    InputError
        If there is no such pair; it lists those that there are.

    See Also
    --------
    llm_group_size : published policies of larger models

    Examples
    --------
    >>> policies = meanfield.datasets.smollm2()
    >>> dict(policies["q"].sizes)
    {'pair': 11, 'state': 1365, 'word': 2}
    >>> policy = meanfield.datasets.smollm2(pair="his/her")
    >>> policy["q"].sel(word="his", state=0).round(3).item()
    0.523
    """
    with as_file(files("meanfield.datasets") / FILE) as path:
        gallery = load(path)
    log_p = gallery["log_probability"].astype(np.float64)
    mass = np.exp(log_p).sum("word").assign_attrs(long_name="probability of the words together", units="1")
    return chosen(validate_policy(gallery.assign(log_probability=log_p, captured_mass=mass)), pair=pair)
