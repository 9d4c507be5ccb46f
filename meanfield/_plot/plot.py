"""One verb that draws any result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from meanfield._plot.registry import readable, view_of
from meanfield.toolbox._arguments import shown
from meanfield.toolbox._errors import InputError, reason

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes

    from meanfield.datasets import RealPopulations


def plot(
    result: xr.Dataset | xr.DataArray | pd.DataFrame | RealPopulations,
    ax: Axes | np.ndarray | None = None,
    *,
    view: str | None = None,
    figsize: tuple[float | int, float | int] | None = None,
    **style: Any,
) -> Axes | np.ndarray:
    """Draw a result, in the view that suits its kind.

    Every result says in `attrs["kind"]` which function made it. A result over several models or pairs has a panel for
    each. Words keep one colour in all panels; a user's style sheet and `matplotlib.rcParams` hold.

    Parameters
    ----------
    result
        What a function of this package returned, or `load` read. A table or an array needs the attrs with which it
        came; real populations need runs in order.
    ax
        Axes to draw into, as many as the result has panels. The default makes a new figure.
    view
        Which drawing, where a kind of result has several; docs/how_to/plots.md lists them. The default is the first one
        for which the result has the numbers.
    figsize
        Width and height of a new figure in inches, as matplotlib has it. The default is `rcParams["figure.figsize"]`,
        and more for several panels.
    **style
        Passed to matplotlib for the main lines, points or cells, as in ``linewidth=2``.

    Returns
    -------
    The axes: one `Axes` for one panel, an array of them for several.

    Raises
    ------
    InputError
        If `result` is of no known kind, lacks what the view draws (all of it is named), `view` is not one of its views,
        `ax` does not fit its panels, `figsize` is not a pair of positive numbers or comes with `ax`, or matplotlib
        refuses a style.

    See Also
    --------
    stability_report : a table as text

    Examples
    --------
    >>> import meanfield, theory, validation
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> solution = meanfield.solve(policy)
    >>> axes = meanfield.plot(solution)
    >>> [line.get_label() for line in axes.get_lines()]
    ['his', 'her']

    Large populations, and groups of N agents:

    >>> axes = meanfield.plot(policy)  # what agents say in each memory
    >>> axes = meanfield.plot(meanfield.fixed_points(policy))
    >>> axes = meanfield.plot(meanfield.bifurcation(policy, word="her"))
    >>> axes = meanfield.plot(meanfield.critical_mass(policy, word="her"), axes)  # into the bifurcation
    >>> runs = validation.simulate(policy, n_agents=[10, 50], runs=20, seed=1, max_rounds=30, record_rounds=30)
    >>> axes = meanfield.plot(runs)  # trajectories
    >>> axes = meanfield.plot(runs, view="times")  # when they agree
    >>> axes = meanfield.plot(validation.compare(solution, runs), view="error")

    Flag games:

    >>> crops = theory.flag_game.crop_compatibility("France")
    >>> axes = meanfield.plot(theory.flag_game.crop_fields(crops, "France", "Peru"), view="map")
    """
    result = _dataset(result)
    drawing = view_of(result, view)
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    from meanfield._plot.fonts import fonts_for
    from meanfield._plot.panels import axes_for, panels_of, show_single_points, wrap_labels, write_legends, write_titles
    from meanfield._plot.words import texts_in, word_colours, words_in

    panels = panels_of(readable(result, drawing.reads, drawing.by, drawing.name), drawing.by)
    axes = axes_for(len(panels), ax, figsize)
    colours = word_colours(words_in(part) for part in panels)
    without = []
    with fonts_for((text for part in panels for text in texts_in(part)), axes):
        try:
            style = normalize_kwargs(style, Line2D)  # lw is linewidth, whichever of them a view sets
            for one, part in zip(axes, panels, strict=True):
                legend = one.get_legend()
                drawing.draw(one, part, colours, **style)
                if "marker" not in style:
                    show_single_points(one)
                if one.get_legend() is legend:
                    without.append(one)
        except (AttributeError, TypeError, ValueError) as error:
            if not style or isinstance(error, InputError):
                raise
            told = ", ".join(f"{name} = {shown(value)}" for name, value in style.items())
            raise InputError(
                f"{told}: expected what matplotlib takes for view = {drawing.name!r} ({reason(error)})"
            ) from error
        layout = axes[0].figure.get_layout_engine() if ax is None else None
        if layout is not None:
            layout.execute(axes[0].figure)  # so that titles, labels and legends see the size of panels
        write_titles(axes, panels, drawing.by, new=ax is None)
        for one in axes:
            wrap_labels(one)
        if layout is not None:
            layout.execute(axes[0].figure)
        many = len(axes) > 1 and ax is None and figsize is None
        beside = write_legends(without, new=ax is None, together=len(without) == len(axes), widen=many)
        if beside and layout is not None:
            layout.execute(axes[0].figure)
            write_titles(axes, panels, drawing.by, new=True)  # a legend leaves them less room
    return axes[0] if len(axes) == 1 else axes


def _dataset(result: Any) -> Any:
    """Tables, arrays and real populations as a Dataset; anything else as it is."""
    import pandas as pd

    from meanfield.datasets._ai_norms import RealPopulations
    from meanfield.datasets._rounds import by_round

    if isinstance(result, RealPopulations):
        return by_round(result)
    if isinstance(result, xr.DataArray) and result.name is not None:
        return result.to_dataset(promote_attrs=True)
    if isinstance(result, pd.DataFrame):
        return result.reset_index(drop=True).to_xarray().assign_attrs(result.attrs)
    return result
