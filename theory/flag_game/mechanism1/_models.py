"""Mechanism 1 compared with simpler models of the same data."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from tqdm.auto import tqdm

from theory.flag_game.mechanism1._counts import Source
from theory.flag_game.mechanism1._fit import fit
from theory.flag_game.mechanism1._parameters import APPENDIX_E, PARAMETERS, Mechanism1
from theory.flag_game.mechanism1._zealots import fit_copying

RULES = ("J", "beta", "alpha")
CONSTANT = replace(APPENDIX_E, scale_T=0.0, scale_R=0.0)
# The name of each model, its free parameters, and the values of the others.
NESTED = {
    "all parameters": (PARAMETERS, APPENDIX_E),
    "constant weights": (tuple(x for x in PARAMETERS if x not in ("scale_T", "scale_R", "exponent_R")), CONSTANT),
    "J, beta, alpha; fields of Appendix E": (RULES, APPENDIX_E),
    "J, beta, alpha; constant weights": (RULES, CONSTANT),
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
    """Compare Mechanism 1, models nested in it and the copying process with zealots by information criteria.

    Copying occurs twice: after infinitely long runs, and after the 16 N interactions of Mechanism 1, with the initial
    share of the truth as one more parameter. [002] fitted Appendix E to its own sweep of GPT-4o. On that sweep only
    rows with `held` = 0 compare fairly: held values cost nothing, so the criteria of the other rows are too small. On
    other data all rows compare fairly.

    Parameters
    ----------
    counts, starts, runs, bootstrap, seed, progress
        As for `fit_mechanism1`.

    Returns
    -------
    DataFrame, one row per model, the best AIC first: `model`; `free`, the number of free parameters; `held`, the number
    of others that have an effect and are held at their values in Appendix E; `effective`, the effective number of free
    parameters, from `bootstrap` refits as in `fit_mechanism1` or, for copying, tr(H⁻¹K), and `effective_error`, its
    Monte-Carlo error; `log_likelihood`, `aic`, `bic`.

    Raises
    ------
    InputError
        If `fit_mechanism1` refuses the counts.

    See Also
    --------
    fit : all parameters

    Examples
    --------
    The models and their numbers of free parameters. Without refits it is quick, and `aic` is NaN for most of them.

    >>> from theory.flag_game.mechanism1 import ENDPOINTS, compare_models
    >>> ends = {f"{name}_count": [count] for name, count in zip(ENDPOINTS, (17, 12, 11, 0))}
    >>> table = compare_models(pd.DataFrame({"N": [4], "seeds": [40]} | ends), starts=0, runs=1000, bootstrap=0)
    >>> for free, model in sorted(zip(table["free"], table["model"])):
    ...     print(free, model)
    0 Appendix E
    3 J, beta, alpha; constant weights
    3 J, beta, alpha; fields of Appendix E
    3 copying with zealots
    4 copying with zealots, 16 N
    11 constant weights
    14 all parameters
    """
    found = []
    for name, (free, start) in tqdm(NESTED.items(), desc="models", disable=not progress, leave=False):
        fitted = fit(counts, free=free, start=start, starts=starts, runs=runs, bootstrap=bootstrap, seed=seed)
        found.append((name, len(free), _held(free, start), fitted.attrs))
    value = found[0][3]["log_likelihood_paper"]
    paper = {"log_likelihood": value, "aic": -2 * value, "bic": -2 * value}
    found.insert(1, ("Appendix E", 0, _held((), APPENDIX_E), paper))
    played = APPENDIX_E.interactions_per_agent
    for name, interactions in (("copying with zealots", None), (f"copying with zealots, {played} N", played)):
        copying = fit_copying(counts, interactions_per_agent=interactions)
        found.append((name, copying.sizes["parameter"], 0, copying.attrs))
    names = {"effective": "effective_parameters", "effective_error": "effective_parameters_error"}
    names |= {name: name for name in ("log_likelihood", "aic", "bic")}
    rows = [
        {"model": model, "free": free, "held": held} | {name: float(attrs.get(key, 0)) for name, key in names.items()}
        for model, free, held, attrs in found
    ]
    return pd.DataFrame(rows).sort_values("aic", ignore_index=True)


def _held(free: tuple[str, ...], start: Mechanism1) -> int:
    """The number of parameters that are held at values of Appendix E and have an effect."""
    idle = {"exponent_R"} if start.scale_R == 0 else set()
    return sum(getattr(start, name) == getattr(APPENDIX_E, name) for name in set(PARAMETERS) - set(free) - idle)
