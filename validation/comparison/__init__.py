"""Theory beside simulation: trajectories, ensembles, errors that shrink with the number of agents."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from meanfield.toolbox import wilson_interval as wilson_interval
    from validation.comparison._compare import compare as compare
    from validation.comparison._ensembles import compare_ensembles as compare_ensembles
    from validation.comparison._report import comparison_table as comparison_table
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
