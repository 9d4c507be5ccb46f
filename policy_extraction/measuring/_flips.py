"""Variants of a prompt, and the part of the way that they go towards the other word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import ConvergenceError, InputError, design, each_policy
from meanfield.toolbox import canonical_order, labelled, labels_of, real_number, signed_kappa, stamp
from policy_extraction._toolbox.bars import hidden
from policy_extraction.measuring._variants import named_stacks


def flip_table(policies: xr.Dataset, *, kappa: float = 0.0, progress: bool | None = None) -> xr.Dataset:
    """The distance that each variant of a prompt goes along the smallest change that makes the other word strong.

    The smallest change of the reference, the first variant, is found by `meanfield.design`. With q its policy, q' the
    changed one, g' the derivative of κ there and q_v a variant, the variant goes g'·(q_v - q)/g'·(q' - q) of the way: 0
    for the reference, 1 for all policies that have the κ of q' to first order.

    Parameters
    ----------
    policies
        Result of `prompt_variants`, of two words.
    kappa
        κ of the other word after that change, from 0 to 1/2.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset over `variant`, and over `pair` if there are several, with

    - `along`, the part of the way, negative in the other direction;
    - `predicted_kappa`, κ of the reference plus its derivative times the change of the policy;
    - `kappa` of the variant itself. Both κ are positive for the word that is strong in the reference;
    - `flips`, whether the other word is strong, and `reason` why a number is NaN, else ''.

    `table.sel(pair=…).sortby("along", ascending=False)` ranks the variants.

    Raises
    ------
    InputError
        If `policies` has no dim `variant`, holds no policies or more than two words, or `kappa` is out of range.

    See Also
    --------
    prompt_variants : the policies
    variant_table : stability, strong word and κ of each

    Examples
    --------
    Only the second variant treats the words differently after a failure, and it does so the other way.

    >>> from policy_extraction.measuring import flip_table
    >>> def asked(undecided):
    ...     def follow(memory):  # says the word that it remembers most
    ...         lead = sum(pair.count("A") - 1 for pair in memory)
    ...         return undecided(memory) if lead == 0 else 0.99 if lead > 0 else 0.01
    ...     return meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> answers = [lambda memory: 0.53, lambda memory: 0.45 if memory else 0.53, lambda memory: 0.55]
    >>> policies = xr.concat([asked(one) for one in answers], pd.Index(["usual", "failures", "eager"], name="variant"))
    >>> table = flip_table(policies)
    >>> table["along"].to_series().round(2).to_dict()
    {'usual': 0.0, 'failures': 1.6, 'eager': -0.67}
    >>> table["predicted_kappa"].values.round(2), table["kappa"].values.round(2)
    (array([ 0.1 , -0.06,  0.17]), array([ 0.1 , -0.06,  0.18]))
    """
    kappa = real_number("kappa", kappa, least=0, most=0.5)
    stacks = named_stacks(policies)
    pairs = list(zip(*map(each_policy, stacks.values()), strict=True))
    bar = tqdm(pairs, desc="flips", unit="pair", disable=hidden(progress), leave=False)
    columns = [_column(variants, list(stacks), kappa) for variants in bar]
    table = xr.concat(columns, dim="pair") if "pair" in policies.dims else columns[0]
    labels = labels_of(next(iter(stacks.values())))
    names = {name: label for name, label in labels.items() if "word" not in label.dims}
    return stamp(
        table.assign_coords({"variant": list(stacks)} | names), "flip_table", reference=next(iter(stacks)), kappa=kappa
    )


def _column(variants: Sequence[xr.Dataset], names: list[str], kappa: float) -> xr.Dataset:
    """The variants of one pair."""
    found = [signed_kappa(policy) for policy in variants]
    reference, reason = found[0]
    sign = np.sign(reference)
    own, reasons = np.array([one for one, _ in found]) * sign, [told for _, told in found]
    along = predicted = np.full(len(variants), np.nan)
    try:
        change = canonical_order(design(variants[0], of="kappa", value=-kappa), "design")
    except ConvergenceError as error:
        reasons = [str(error), *reasons[1:]]
    except InputError:
        if np.isfinite(reference):
            raise
        reasons = [reason or "κ of the reference is infinite", *reasons[1:]]
    else:
        first = np.array([policy["q"].values[:, 0] for policy in variants])
        moved = first - first[0]
        after = change["derivative_after"].values
        along = moved @ after / (change["change"].values @ after) + 0.0  # no -0
        predicted = change["value_before"].item() + moved @ change["derivative"].values
    columns = {
        "along": ("variant", along, "part of the smallest change that makes the other word strong"),
        "predicted_kappa": ("variant", predicted, "κ to first order, positive for the strong word of the reference"),
        "kappa": ("variant", own, "κ, positive for the strong word of the reference"),
    }
    table = labelled(columns, coords={"variant": names})
    table["flips"] = ("variant", own < 0)
    table["reason"] = ("variant", np.array(reasons, dtype=str))
    return table
