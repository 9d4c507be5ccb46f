"""One verb that draws any result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from meanfield._plot.registry import view_of

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes


def plot(
    result: xr.Dataset, ax: Axes | np.ndarray | None = None, *, view: str | None = None, **style: Any
) -> Axes | np.ndarray:
    """Draw a result, in the view that suits its kind.

    Every result says in `attrs["kind"]` which function made it. A result over several models or pairs has a panel for
    each. Words keep one colour in all panels; a user's style sheet and `matplotlib.rcParams` hold.

    Parameters
    ----------
    result
        What a function of this package returned, or `load` read.
    ax
        Axes to draw into, as many as the result has panels. The default makes a new figure.
    view
        Which drawing, where a kind of result has several; see `meanfield.plot_views()`. The default is the first.
    **style
        Passed to matplotlib for the main lines, points or cells, as in ``linewidth=2``.

    Returns
    -------
    The axes: one `Axes` for one panel, an array of them for several.

    Raises
    ------
    InputError
        If `result` is of no known kind, `view` is not one of its views, or `ax` does not fit its panels.

    See Also
    --------
    stability_report : a table as text

    Examples
    --------
    >>> import meanfield
    >>> policy = meanfield.make_policy([0.5, 0.9, 0.5, 0.5, 0.2], ["his", "her"])
    >>> axes = meanfield.plot(meanfield.solve(policy))
    >>> [line.get_label() for line in axes.get_lines()]
    ['his', 'her']
    """
    drawing = view_of(result, view)
    from meanfield._plot.panels import axes_for, panels_of, write_titles
    from meanfield._plot.words import word_colours, words_in

    panels = panels_of(result, drawing.by)
    axes = axes_for(len(panels), ax)
    colours = word_colours(words_in(part) for part in panels)
    for one, part in zip(axes, panels, strict=True):
        drawing.draw(one, part, colours, **style)
        if one.get_legend_handles_labels()[0] and one.get_legend() is None:
            one.legend()
    write_titles(axes, panels, drawing.by, new=ax is None)
    return axes[0] if len(axes) == 1 else axes
