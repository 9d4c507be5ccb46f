"""Stochastic simulation of finite populations, and its comparison with mean-field theory."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_door

if TYPE_CHECKING:
    from validation._collective_bias import collective_bias as collective_bias
    from validation._committed_minority import committed_minority as committed_minority
    from validation._committed_minority import consensus_stability as consensus_stability
    from validation._compare import compare as compare
    from validation._compare_ensembles import compare_ensembles as compare_ensembles
    from validation._compare_norms import compare_norms as compare_norms
    from validation._convention import CONVENTIONS as CONVENTIONS
    from validation._convention import Convention as Convention
    from validation._empirical_policy import empirical_policy as empirical_policy
    from validation._empirical_policy import sample_policies as sample_policies
    from validation._exact import ExactPopulation as ExactPopulation
    from validation._exact import exact_population as exact_population
    from validation._flag_game_composition import compare_composition as compare_composition
    from validation._flag_game_composition import predict_composition as predict_composition
    from validation._flag_game_composition import sample_crops as sample_crops
    from validation._flag_game_endpoints import endpoints as endpoints
    from validation._flag_game_endpoints import flag_game_accuracy as flag_game_accuracy
    from validation._gossip import simulate_gossip as simulate_gossip
    from validation._intervals import wilson_interval as wilson_interval
    from validation._lazy_policy import LazyPolicy as LazyPolicy
    from validation._mechanism1 import compare_mechanism1 as compare_mechanism1
    from validation._mechanism1 import simulate_mechanism1 as simulate_mechanism1
    from validation._microscopic_bias import individual_bias as individual_bias
    from validation._microscopic_bias import microscopic_bias as microscopic_bias
    from validation._minimal_naming_game import simulate_minimal_naming_game as simulate_minimal_naming_game
    from validation._misalignment import misalignment as misalignment
    from validation._misalignment import neutrality as neutrality
    from validation._norm_emergence import average_norms as average_norms
    from validation._norm_emergence import simulate_norms as simulate_norms
    from validation._norm_society import simulate_society as simulate_society
    from validation._outcomes import consensus_times as consensus_times
    from validation._outcomes import critical_size_from_simulation as critical_size_from_simulation
    from validation._outcomes import simulated_bias as simulated_bias
    from validation._protocol import Transition as Transition
    from validation._protocol import simulate_protocol as simulate_protocol
    from validation._questionnaire_filled import read_evaluation as read_evaluation
    from validation._questionnaire_form import evaluation_form as evaluation_form
    from validation._questionnaire_scores import questionnaire_scores as questionnaire_scores
    from validation._real_populations import real_populations_report as real_populations_report
    from validation._real_populations import validate_real_populations as validate_real_populations
    from validation._report import comparison_table as comparison_table
    from validation._simulate import simulate as simulate
    from validation._sweep import open_sweep as open_sweep
    from validation._sweep import sweep as sweep
    from validation._table_operations import TableOperations as TableOperations
else:
    __getattr__, __dir__, __all__ = lazy_door(__name__, __file__)
