"""The naming game with memory: its rate equation for two words and H = 1, derived with sympy, and rules of choice."""

from theory.naming_game._fingerprints import fingerprints as fingerprints
from theory.naming_game._fit_rule import fit_rule as fit_rule
from theory.naming_game._fit_rule import summary as summary
from theory.naming_game._fit_runs import fit_runs as fit_runs
from theory.naming_game._rate_equation import RateEquation as RateEquation
from theory.naming_game._rate_equation import consensus_eigenvalues as consensus_eigenvalues
from theory.naming_game._rate_equation import rate_equation as rate_equation
from theory.naming_game._rate_equation import reaction_tensor as reaction_tensor
from theory.naming_game._rate_equation import reduced_jacobian as reduced_jacobian
from theory.naming_game._rules import rule_policy as rule_policy
