"""Stochastic simulation of finite populations, and its comparison with mean-field theory."""

from validation._collective_bias import collective_bias as collective_bias
from validation._compare import compare as compare
from validation._convention import CONVENTIONS as CONVENTIONS
from validation._convention import Convention as Convention
from validation._empirical_policy import empirical_policy as empirical_policy
from validation._empirical_policy import sample_policies as sample_policies
from validation._exact import ExactPopulation as ExactPopulation
from validation._exact import exact_population as exact_population
from validation._intervals import wilson_interval as wilson_interval
from validation._microscopic_bias import individual_bias as individual_bias
from validation._microscopic_bias import microscopic_bias as microscopic_bias
from validation._minimal_naming_game import simulate_minimal_naming_game as simulate_minimal_naming_game
from validation._protocol import Transition as Transition
from validation._protocol import simulate_protocol as simulate_protocol
from validation._real_populations import real_populations_report as real_populations_report
from validation._real_populations import validate_real_populations as validate_real_populations
from validation._report import comparison_table as comparison_table
from validation._simulate import simulate as simulate
from validation._sweep import open_sweep as open_sweep
from validation._sweep import sweep as sweep
