"""The scores of filled forms, by task and overall: [003] Fig. 4."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import labelled, one_or_several, stamp
from validation.norms.questionnaire._filled import filled_scores
from validation.norms.questionnaire._form import TASKS, Form


def questionnaire_scores(forms: Iterable[Form]) -> xr.Dataset:
    """The scores of filled forms by task, as in [003] Fig. 4.

    The score of a question in a form is the mean of its items, the score of a task the mean over all questions and
    forms with items, and the overall score the mean over all tasks. So a task counts by its number of questions, and
    the creation of norms by the forms of entrepreneurs only; with these weights the paper's scores of the tasks give
    its 5.63. Forms are independent and items of a form are not: the standard error is that of a ratio of sums over
    forms (Cochran 1977, Sampling Techniques, Section 6.4).

    Parameters
    ----------
    forms
        Results of `read_evaluation`, one or more.

    Returns
    -------
    Dataset over `task` (coordinate `module`) with `score`, `standard_error`, `forms`, the number with items of the
    task, and `items`, the number of scores; and `overall`, `overall_standard_error`. NaN without items; errors also
    with items in fewer than two forms.

    Raises
    ------
    InputError
        If there are no forms, or one is not filled in as `read_evaluation` expects it.

    See Also
    --------
    read_evaluation : reads the forms

    Examples
    --------
    >>> records = [{"operation": "decide_to_talk", "agent": "Sam Moore", "inputs": "loud guests", "output": "yes"}]
    >>> forms = [validation.norms.evaluation_form(records, "Sam Moore", seed=1) for person in range(2)]
    >>> for form, score in zip(forms, (6, 7)):
    ...     form["tasks"][1]["questions"][1]["items"][0]["score"] = score
    >>> scores = validation.norms.questionnaire_scores(forms).sel(task="Sender")
    >>> scores["score"].item(), scores["standard_error"].item()
    (6.5, 0.5)
    """
    each = [filled_scores(form, f"forms[{k}]") for k, form in enumerate(one_or_several(forms))]
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
    modules = ("task", [task["module"] for task in TASKS.values()])
    return stamp(labelled(columns, {"task": list(TASKS), "module": modules}), "norm_questionnaire", forms=len(each))


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
