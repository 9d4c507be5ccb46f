"""The naming game with memory: its rate equation for two words and H = 1, derived with sympy."""

from theory.naming_game._rate_equation import RateEquation as RateEquation
from theory.naming_game._rate_equation import consensus_eigenvalues as consensus_eigenvalues
from theory.naming_game._rate_equation import rate_equation as rate_equation
from theory.naming_game._rate_equation import reaction_tensor as reaction_tensor
from theory.naming_game._rate_equation import reduced_jacobian as reduced_jacobian
