"""Emergence of norms in finite populations."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_door

if TYPE_CHECKING:
    from validation.norms._compare import compare as compare
    from validation.norms._emergence import simulate as simulate
else:
    __getattr__, __dir__, __all__ = lazy_door(
        __name__,
        __file__,
        former=(
            *("average", "evaluation_form", "questionnaire_scores", "read_evaluation"),
            *("simulate_society", "TableOperations"),
        ),
    )
