"""Stochastic simulation of finite populations, and its comparison with mean-field theory.

Packages: `naming_game`, `minimal_naming_game`, `flag_game`, `reactions` (any population protocol), `populations` (that
were really run) and `comparison`. The naming game's five main functions are also here.
"""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package, require_packages

require_packages("theory")

if TYPE_CHECKING:
    from validation import comparison as comparison
    from validation import flag_game as flag_game
    from validation import minimal_naming_game as minimal_naming_game
    from validation import naming_game as naming_game
    from validation import populations as populations
    from validation import reactions as reactions
    from validation.comparison._compare import compare as compare
    from validation.naming_game._collective_bias import collective_bias as collective_bias
    from validation.naming_game._rare_event import rare_event as rare_event
    from validation.naming_game._simulate import simulate as simulate
    from validation.naming_game._sweep import sweep as sweep
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
