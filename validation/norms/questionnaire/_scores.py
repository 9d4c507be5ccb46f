"""The scores of filled forms, by task and overall: [003] Fig. 4."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import labelled, stamp
from validation.norms.questionnaire._filled import filled_scores
from validation.norms.questionnaire._form import TASKS, Form


def questionnaire_scores(forms: Iterable[Form]) -> xr.Dataset:
    """The scores of filled forms by task, as [003] Fig. 4 has them.

    Of every question of a form the mean of its items is taken. The score of a task is the mean of these over all
    questions and forms that have items, and the overall score the mean over all tasks. So a task counts by its number
    of questions, and the creation of norms by the forms of entrepreneurs only: with these weights the scores that the
    paper has for the tasks give its 5.63. Forms are independent of each other and the items of a form are not: the
    standard error is that of a ratio of sums over forms (Cochran 1977, Sampling Techniques, Section 6.4).

    Parameters
    ----------
    forms
        As `read_evaluation` returns them, one or more.

    Returns
    -------
    Dataset over `task` (coordinate `module`) with `score`, `standard_error`, `forms`, how many have items of the task,
    and `items`, how many scores; and `overall`, `overall_standard_error`. NaN where there are no items, and errors
    also where fewer than two forms have any.

    Raises
    ------
    InputError
        If there are no forms, or one is not filled in as `read_evaluation` expects it.

    See Also
    --------
    read_evaluation : reads the forms
    """
    each = [filled_scores(form, f"forms[{k}]") for k, form in enumerate(forms)]
    if not each:
        raise InputError("forms is empty: expected one or more")
    # (form, task): sum of the means of questions, number of questions with items, number of items
    total, questions, items = np.array(
        [
            [
                (sum(map(np.mean, filled)), len(filled), sum(map(len, filled)))
                for filled in ([scores for scores in one[task] if scores] for task in TASKS)
            ]
            for one in each
        ],
        dtype=float,
    ).transpose(2, 0, 1)
    score, error = np.array([_ratio(total[:, k], questions[:, k]) for k in range(len(TASKS))]).T
    overall, overall_error = _ratio(total.sum(1), questions.sum(1))
    columns = {
        "score": ("task", score, "mean score"),
        "standard_error": ("task", error, "standard error of the mean score, over forms"),
        "forms": ("task", (questions > 0).sum(0), "forms with items"),
        "items": ("task", items.sum(0).astype(int), "scores"),
        "overall": ((), overall, "mean score of all tasks"),
        "overall_standard_error": ((), overall_error, "standard error of that mean, over forms"),
    }
    result = labelled(
        columns,
        coords={"task": list(TASKS), "module": ("task", [task["module"] for task in TASKS.values()])},
    )
    return stamp(result, "norm_questionnaire", forms=len(each))


def _ratio(total: np.ndarray, number: np.ndarray) -> tuple[float, float]:
    """Σ total / Σ number over forms, and its standard error."""
    among = number > 0
    total, number = total[among], number[among]
    forms = len(total)
    if not forms:
        return np.nan, np.nan
    mean = total.sum() / number.sum()
    if forms < 2:
        return float(mean), np.nan
    spread = ((total - mean * number) ** 2).sum() * forms / (forms - 1)
    return float(mean), float(np.sqrt(spread) / number.sum())
