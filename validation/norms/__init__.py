"""Emergence of norms in finite populations, and societies of agents who decide for themselves."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_door

if TYPE_CHECKING:
    from validation.norms._compare import compare as compare
    from validation.norms._emergence import average as average
    from validation.norms._emergence import simulate as simulate
    from validation.norms._table_operations import TableOperations as TableOperations
    from validation.norms.questionnaire._filled import read_evaluation as read_evaluation
    from validation.norms.questionnaire._form import evaluation_form as evaluation_form
    from validation.norms.questionnaire._scores import questionnaire_scores as questionnaire_scores
    from validation.norms.society._simulate import simulate_society as simulate_society
else:
    __getattr__, __dir__, __all__ = lazy_door(__name__, __file__)
