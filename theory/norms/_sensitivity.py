"""How the emergence of norms depends on each operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import one_or_several, real_number, stamp
from theory.norms._emergence import emergence, emergence_measures
from theory.norms._operations import OPERATIONS, default_operations, operations_sha256, validate_operations


def sensitivity(
    behaviours: Sequence[str] | None = None,
    *,
    operations: xr.Dataset | None = None,
    names: Sequence[str] | None = None,
    step: float = 1e-3,
    level: float = 0.7,
    progress: bool = False,
    **options: Any,
) -> xr.Dataset:
    """Derivatives of `emergence_measures` of the standard 'for' with respect to each operation probability.

    A derivative times `value` is the effect of a relative change of the probability. The derivatives are differences of
    second order: central ones and, closer than `step` to 0 or 1, three-point ones from inside.

    Parameters
    ----------
    behaviours, operations
        As for `emergence`.
    names
        Operations to vary; by default all.
    step
        Step of the differences, above 0, up to 1/3.
    level
        As for `emergence_measures`.
    progress
        Show a progress bar.
    options
        Further arguments of `emergence`.

    Returns
    -------
    Dataset over (parameter, behaviour) with the derivative of each measure (NaN where a share never reaches `level`),
    and the probability itself, `value` (parameter). Parameters have names like 'decide_to_talk[ordinary, willing]'.

    Raises
    ------
    InputError
        If a name is unknown, the step is out of range, or `emergence` refuses an argument.

    See Also
    --------
    emergence_measures : the measures

    Examples
    --------
    The surer agents are to plan by a norm, the sooner most of them comply: a negative derivative, in days.

    >>> from theory.norms import sensitivity
    >>> effect = sensitivity(["smoking"], names=["comply_in_plan"]).sel(behaviour="smoking")
    >>> effect["complying_day"].to_series().round(1).to_dict()
    {'comply_in_plan[willing]': -0.2, 'comply_in_plan[unwilling]': -0.2}
    """
    real_number("step", step, above=0, most=1 / 3)
    table = validate_operations(default_operations() if operations is None else operations)
    if isinstance(names, str):
        raise InputError(f"names = {names!r}: expected a list of names")
    chosen = one_or_several(list(OPERATIONS) if names is None else names)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"names = {chosen}: expected one or more different ones")
    for name in chosen:
        if name not in OPERATIONS:
            raise InputError(f"names have {name!r}: expected some of {', '.join(OPERATIONS)}")
    entries = [(name, place) for name in chosen for place in np.ndindex(table[name].shape)]

    def measured(name: str, place: tuple[int, ...], value: float) -> xr.Dataset:
        changed = table.copy(deep=True)
        changed[name].values[place] = value
        curves = emergence(behaviours, operations=changed, **options)
        return emergence_measures(curves, level=level).sel(standard="for", drop=True)

    derivatives = []
    for name, place in tqdm(entries, desc="operations", disable=not progress, leave=False):
        value = float(table[name].values[place])
        derivatives.append(sum(w * measured(name, place, v) for v, w in _difference(value, step)))
    labels = [_label(table, *entry) for entry in entries]
    result = xr.concat(derivatives, dim=pd.Index(labels, name="parameter"))
    for name in result.data_vars:
        unit = "day" if str(name).endswith("_day") else "1"
        result[name].attrs = {"long_name": f"d {name} / d probability", "units": unit}
    values = [float(table[name].values[place]) for name, place in entries]
    result["value"] = ("parameter", values, {"long_name": "probability", "units": "1"})
    return stamp(result, "norm_sensitivity", None, operations_sha256=operations_sha256(table), step=step, level=level)


def _difference(value: float, step: float) -> list[tuple[float, float]]:
    """[(where, weight)] of a derivative at `value` from values in [0, 1]."""
    if step <= value <= 1 - step:
        return [(value + step, 0.5 / step), (value - step, -0.5 / step)]
    inward = step if value < step else -step
    return [(value, -1.5 / inward), (value + inward, 2 / inward), (value + 2 * inward, -0.5 / inward)]


def _label(table: xr.Dataset, name: str, place: tuple[int, ...]) -> str:
    labels = [str(table[dim].values[k]) for dim, k in zip(table[name].dims, place, strict=True)]
    return f"{name}[{', '.join(labels)}]" if labels else name
