"""The papers' analytic models: equations derived with sympy, held against the engine by tests."""

from theory._naming_game import RateEquation as RateEquation
from theory._naming_game import consensus_eigenvalues as consensus_eigenvalues
from theory._naming_game import rate_equation as rate_equation
from theory._naming_game import reaction_tensor as reaction_tensor
from theory._naming_game import reduced_jacobian as reduced_jacobian
