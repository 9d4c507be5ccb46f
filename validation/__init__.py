"""Stochastic simulation of finite populations, and its comparison with mean-field theory."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_door

if TYPE_CHECKING:
    from validation import comparison as comparison
    from validation import flag_game as flag_game
    from validation import minimal_naming_game as minimal_naming_game
    from validation import naming_game as naming_game
    from validation import norms as norms
    from validation import populations as populations
    from validation import reactions as reactions
    from validation.comparison._compare import compare as compare
    from validation.comparison._ensembles import compare_ensembles as compare_ensembles
    from validation.comparison._intervals import wilson_interval as wilson_interval
    from validation.comparison._report import comparison_table as comparison_table
    from validation.flag_game._composition import compare_composition as compare_composition
    from validation.flag_game._composition import predict_composition as predict_composition
    from validation.flag_game._composition import sample_crops as sample_crops
    from validation.flag_game._endpoints import endpoints as endpoints
    from validation.flag_game._endpoints import flag_game_accuracy as flag_game_accuracy
    from validation.flag_game._gossip import simulate_gossip as simulate_gossip
    from validation.flag_game._mechanism1 import compare_mechanism1 as compare_mechanism1
    from validation.flag_game._mechanism1 import simulate_mechanism1 as simulate_mechanism1
    from validation.minimal_naming_game._simulate import simulate_minimal_naming_game as simulate_minimal_naming_game
    from validation.naming_game._collective_bias import collective_bias as collective_bias
    from validation.naming_game._committed_minority import committed_minority as committed_minority
    from validation.naming_game._committed_minority import consensus_stability as consensus_stability
    from validation.naming_game._convention import CONVENTIONS as CONVENTIONS
    from validation.naming_game._convention import Convention as Convention
    from validation.naming_game._exact import ExactPopulation as ExactPopulation
    from validation.naming_game._exact import exact_population as exact_population
    from validation.naming_game._lazy_policy import LazyPolicy as LazyPolicy
    from validation.naming_game._outcomes import consensus_times as consensus_times
    from validation.naming_game._outcomes import critical_size_from_simulation as critical_size_from_simulation
    from validation.naming_game._outcomes import simulated_bias as simulated_bias
    from validation.naming_game._simulate import simulate as simulate
    from validation.naming_game._sweep import open_sweep as open_sweep
    from validation.naming_game._sweep import sweep as sweep
    from validation.norms._compare import compare_norms as compare_norms
    from validation.norms._emergence import average_norms as average_norms
    from validation.norms._emergence import simulate_norms as simulate_norms
    from validation.norms._table_operations import TableOperations as TableOperations
    from validation.norms.questionnaire._filled import read_evaluation as read_evaluation
    from validation.norms.questionnaire._form import evaluation_form as evaluation_form
    from validation.norms.questionnaire._scores import questionnaire_scores as questionnaire_scores
    from validation.norms.society._simulate import simulate_society as simulate_society
    from validation.populations._empirical_policy import empirical_policy as empirical_policy
    from validation.populations._empirical_policy import sample_policies as sample_policies
    from validation.populations._microscopic_bias import individual_bias as individual_bias
    from validation.populations._microscopic_bias import microscopic_bias as microscopic_bias
    from validation.populations._misalignment import misalignment as misalignment
    from validation.populations._misalignment import neutrality as neutrality
    from validation.populations._validate import real_populations_report as real_populations_report
    from validation.populations._validate import validate_real_populations as validate_real_populations
    from validation.reactions._protocol import Transition as Transition
    from validation.reactions._protocol import simulate_protocol as simulate_protocol
else:
    __getattr__, __dir__, __all__ = lazy_door(__name__, __file__)
