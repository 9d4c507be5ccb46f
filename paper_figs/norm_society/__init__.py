"""An example: a society of agents with their own norms; a table or a language model decides for them. [003]

`simulate_society` plays it; `TableOperations`, or `NormOperations` with a language model, decides for agents.
"""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from paper_figs.norm_society._language_model import NormOperations as NormOperations
    from paper_figs.norm_society._society import simulate_society as simulate_society
    from paper_figs.norm_society._table import TableOperations as TableOperations
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
