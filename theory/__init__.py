"""The papers' analytic models: equations derived with sympy, held against the engine by tests."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_door

if TYPE_CHECKING:
    from theory import flag_game as flag_game
    from theory import minimal_naming_game as minimal_naming_game
    from theory import naming_game as naming_game
    from theory import norms as norms
    from theory.flag_game.gossip import gossip_decay_rate as gossip_decay_rate
    from theory.flag_game.gossip import gossip_drift as gossip_drift
    from theory.flag_game.gossip import gossip_fixation as gossip_fixation
    from theory.flag_game.gossip import gossip_heterozygosity as gossip_heterozygosity
    from theory.flag_game.mechanism1 import APPENDIX_E as APPENDIX_E
    from theory.flag_game.mechanism1 import Mechanism1 as Mechanism1
    from theory.flag_game.mechanism1 import compare_mechanism1_models as compare_mechanism1_models
    from theory.flag_game.mechanism1 import copying_law as copying_law
    from theory.flag_game.mechanism1 import fit_copying as fit_copying
    from theory.flag_game.mechanism1 import fit_mechanism1 as fit_mechanism1
    from theory.flag_game.mechanism2 import fit_mechanism2 as fit_mechanism2
    from theory.flag_game.mechanism2 import memory_conflict_response as memory_conflict_response
    from theory.flag_game.mechanism2 import memory_conflict_table as memory_conflict_table
    from theory.flag_game.random_field import FieldLaw as FieldLaw
    from theory.flag_game.random_field import bimodal_fields as bimodal_fields
    from theory.flag_game.random_field import normal_fields as normal_fields
    from theory.flag_game.random_field import random_field_bifurcation as random_field_bifurcation
    from theory.flag_game.random_field import random_field_fixed_points as random_field_fixed_points
    from theory.flag_game.random_field import random_field_phase_diagram as random_field_phase_diagram
    from theory.flag_game.random_field import random_field_pitchfork as random_field_pitchfork
    from theory.minimal_naming_game import MinimalAgent as MinimalAgent
    from theory.minimal_naming_game import MinimalInteraction as MinimalInteraction
    from theory.minimal_naming_game import MinimalManyWords as MinimalManyWords
    from theory.minimal_naming_game import MinimalRateEquation as MinimalRateEquation
    from theory.minimal_naming_game import minimal_critical_fraction as minimal_critical_fraction
    from theory.minimal_naming_game import minimal_critical_polynomial as minimal_critical_polynomial
    from theory.minimal_naming_game import minimal_drift as minimal_drift
    from theory.minimal_naming_game import minimal_fixed_points as minimal_fixed_points
    from theory.minimal_naming_game import minimal_interactions as minimal_interactions
    from theory.minimal_naming_game import minimal_many_words as minimal_many_words
    from theory.minimal_naming_game import minimal_rate_equation as minimal_rate_equation
    from theory.minimal_naming_game import minimal_two_word_agents as minimal_two_word_agents
    from theory.naming_game import RateEquation as RateEquation
    from theory.naming_game import consensus_eigenvalues as consensus_eigenvalues
    from theory.naming_game import rate_equation as rate_equation
    from theory.naming_game import reaction_tensor as reaction_tensor
    from theory.naming_game import reduced_jacobian as reduced_jacobian
else:
    __getattr__, __dir__, __all__ = lazy_door(__name__, __file__)
