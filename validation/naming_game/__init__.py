"""The naming game of finite populations: simulated, exact, swept, and with committed minorities."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
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
    from validation.naming_game._rare_event import rare_event as rare_event
    from validation.naming_game._simulate import simulate as simulate
    from validation.naming_game._sweep import open_sweep as open_sweep
    from validation.naming_game._sweep import sweep as sweep
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
