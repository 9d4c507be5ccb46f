"""Mechanism 1 beside simpler models of the same data."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from tqdm.auto import tqdm

from theory.flag_game.mechanism1._counts import Source
from theory.flag_game.mechanism1._fit import fit
from theory.flag_game.mechanism1._parameters import APPENDIX_E, PARAMETERS, Mechanism1
from theory.flag_game.mechanism1._zealots import fit_copying

SHAPES = ("scale_T", "scale_R", "exponent_R")
# The name of each model, its free parameters, and what its others are held at.
NESTED = {
    "all parameters": (PARAMETERS, APPENDIX_E),
    "constant weights": (
        tuple(name for name in PARAMETERS if name not in SHAPES),
        replace(APPENDIX_E, scale_T=0.0, scale_R=0.0),
    ),
    "J, beta, alpha; fields of Appendix E": (("J", "beta", "alpha"), APPENDIX_E),
    "J, beta, alpha; constant weights": (
        ("J", "beta", "alpha"),
        replace(APPENDIX_E, scale_T=0.0, scale_R=0.0),
    ),
}


def compare_models(
    counts: Source,
    *,
    starts: int = 3,
    runs: int | None = None,
    bootstrap: int = 20,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Mechanism 1, models nested in it, and the copying process with zealots, by information criterion.

    Copying is there twice: after infinitely long runs, and after the 16 N interactions of Mechanism 1, where the share
    of the truth at the start is one parameter more.

    Parameters
    ----------
    counts, starts, runs, bootstrap, seed, progress
        As `fit_mechanism1` takes them.

    Returns
    -------
    DataFrame, a row a model, the best AIC first: `model`, `free`, how many parameters are free; `held`, how many others
    count that are held at their values in Appendix E; `effective`, how many the free ones count for, by `bootstrap`
    refits as in `fit_mechanism1`, tr(H⁻¹K) for copying; `effective_error`, its Monte-Carlo error; `log_likelihood`,
    `aic`, `bic`. [002] fitted Appendix E to its own sweep of GPT-4o: on that sweep the criteria of the rows with
    `held` above 0 are too small, since these values cost nothing there, and only rows with `held` = 0 compare fairly.
    On other data all do.

    Raises
    ------
    InputError
        If the counts are not as `fit_mechanism1` takes them.

    See Also
    --------
    fit : all parameters
    """
    rows = []
    for name, (free, start) in tqdm(NESTED.items(), desc="models", disable=not progress, leave=False):
        fitted = fit(counts, free=free, start=start, starts=starts, runs=runs, bootstrap=bootstrap, seed=seed)
        rows.append({"model": name, "free": len(free), "held": _held(free, start)} | _row(fitted.attrs))
        if name == "all parameters":
            value = fitted.attrs["log_likelihood_paper"]
            rows.append(
                {"model": "Appendix E", "free": 0, "held": _held((), APPENDIX_E), "effective": 0.0}
                | {"effective_error": 0.0, "log_likelihood": value, "aic": -2 * value, "bic": -2 * value}
            )
    played = APPENDIX_E.interactions_per_agent
    for name, interactions in (("copying with zealots", None), (f"copying with zealots, {played} N", played)):
        copying = fit_copying(counts, interactions_per_agent=interactions)
        rows.append({"model": name, "free": copying.sizes["parameter"], "held": 0} | _row(copying.attrs))
    return pd.DataFrame(rows).sort_values("aic", ignore_index=True)


def _held(free: tuple[str, ...], start: Mechanism1) -> int:
    """How many parameters that are not free have the values of Appendix E, where these matter."""
    idle = {"exponent_R"} if start.scale_R == 0 else set()
    others = set(PARAMETERS) - set(free) - idle
    return sum(getattr(start, name) == getattr(APPENDIX_E, name) for name in others)


def _row(attrs: dict) -> dict[str, float]:
    names = {"effective": "effective_parameters", "effective_error": "effective_parameters_error"}
    names |= {name: name for name in ("log_likelihood", "aic", "bic")}
    return {name: float(attrs.get(key, 0.0)) for name, key in names.items()}
