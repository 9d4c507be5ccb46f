"""Emergence of norms in finite populations, and societies of agents who decide for themselves."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_door

if TYPE_CHECKING:
    from validation.norms._compare import compare as compare
    from validation.norms._emergence import simulate as simulate
    from validation.norms._questionnaire import evaluation_form as evaluation_form
    from validation.norms._questionnaire import questionnaire_scores as questionnaire_scores
    from validation.norms._society import simulate_society as simulate_society
    from validation.norms._table import TableOperations as TableOperations
else:
    __getattr__, __dir__, __all__ = lazy_door(__name__, __file__, former=("average", "read_evaluation"))
