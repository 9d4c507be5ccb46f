"""The minimal naming game of inventories: its rate equations, fixed points and critical committed fractions."""

from theory.minimal_naming_game._fixed_points import critical_fraction as critical_fraction
from theory.minimal_naming_game._fixed_points import critical_polynomial as critical_polynomial
from theory.minimal_naming_game._fixed_points import fixed_points as fixed_points
from theory.minimal_naming_game._in_groups import group_model as group_model
from theory.minimal_naming_game._open_vocabulary import open_vocabulary as open_vocabulary
from theory.minimal_naming_game._rate_equation import Agent as Agent
from theory.minimal_naming_game._rate_equation import Interaction as Interaction
from theory.minimal_naming_game._rate_equation import RateEquation as RateEquation
from theory.minimal_naming_game._rate_equation import interactions as interactions
from theory.minimal_naming_game._rate_equation import rate_equation as rate_equation
from theory.minimal_naming_game._rate_equation import reaction_model as reaction_model
from theory.minimal_naming_game._rate_equation import two_word_agents as two_word_agents
