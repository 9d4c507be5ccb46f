"""The papers' analytic models, one package each: equations derived with sympy, closed forms, fits."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from theory import flag_game as flag_game
    from theory import minimal_naming_game as minimal_naming_game
    from theory import naming_game as naming_game
    from theory import norms as norms
    from theory.flag_game.mechanism1 import fit as fit_mechanism1  # noqa: F401 - another name on purpose
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
