"""An example: a society of agents with norms of their own, whose decisions a table or a language model makes. [003]

`simulate_society` plays it; `TableOperations` and `NormOperations`, with a language model, decide for its agents.
"""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from paper_figs.norm_society._language_model import NormOperations as NormOperations
    from paper_figs.norm_society._society import simulate_society as simulate_society
    from paper_figs.norm_society._table import TableOperations as TableOperations
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
