"""Mean-field theory of populations of language models.

A policy (what an agent says in every memory state) becomes a rate equation, its fixed points, their spectra and a
stability table. Results are labelled `xarray.Dataset`s.
"""

from typing import TYPE_CHECKING

import jax

jax.config.update("jax_enable_x64", True)

from meanfield._lazy_door import lazy_door as lazy_door

if TYPE_CHECKING:
    from meanfield import datasets as datasets
    from meanfield._basins import basins as basins
    from meanfield._bifurcation import bifurcation as bifurcation
    from meanfield._cache_folder import cache_folder as cache_folder
    from meanfield._compositions import consensus as consensus
    from meanfield._compositions import empty_memories as empty_memories
    from meanfield._compositions import validate_composition as validate_composition
    from meanfield._critical_mass import critical_mass as critical_mass
    from meanfield._csv import column_numbers as column_numbers
    from meanfield._csv import read_csv as read_csv
    from meanfield._errors import InputError as InputError
    from meanfield._errors import UnparsedError as UnparsedError
    from meanfield._files import check_writable as check_writable
    from meanfield._files import load as load
    from meanfield._files import load_policy as load_policy
    from meanfield._files import save as save
    from meanfield._files import whole_file as whole_file
    from meanfield._finite_size import finite_size as finite_size
    from meanfield._fixed_points import fixed_points as fixed_points
    from meanfield._group_size_law import group_size_law as group_size_law
    from meanfield._labels import canonical_order as canonical_order
    from meanfield._memory import MemorySpace as MemorySpace
    from meanfield._memory_budget import check_memory as check_memory
    from meanfield._observables import MIXED as MIXED
    from meanfield._observables import convention as convention
    from meanfield._observables import entropy as entropy
    from meanfield._observables import success_rate as success_rate
    from meanfield._policy import each_policy as each_policy
    from meanfield._policy import make_policy as make_policy
    from meanfield._policy import name_of as name_of
    from meanfield._policy import policy_hash as policy_hash
    from meanfield._policy import single_policy as single_policy
    from meanfield._policy import space_of as space_of
    from meanfield._policy import validate_policy as validate_policy
    from meanfield._policy import word_index as word_index
    from meanfield._policy import words_of as words_of
    from meanfield._population import Population as Population
    from meanfield._population import as_population as as_population
    from meanfield._population_rounds import PopulationRuns as PopulationRuns
    from meanfield._population_rounds import RoundRecords as RoundRecords
    from meanfield._population_rounds import SpeechRules as SpeechRules
    from meanfield._population_rounds import play_rounds as play_rounds
    from meanfield._population_rounds import select_runs as select_runs
    from meanfield._provenance import stamp as stamp
    from meanfield._rate_equation import TIME_PER_ROUND as TIME_PER_ROUND
    from meanfield._rate_equation import drift as drift
    from meanfield._rate_equation import linearised_drift as linearised_drift
    from meanfield._reaction import dense_tensor as dense_tensor
    from meanfield._reaction_model import ReactionModel as ReactionModel
    from meanfield._reaction_model import reaction_protocol as reaction_protocol
    from meanfield._reaction_model_fixed_points import reaction_fixed_points as reaction_fixed_points
    from meanfield._reaction_model_solve import solve_reactions as solve_reactions
    from meanfield._roots import all_roots as all_roots
    from meanfield._sensitivity import sensitivity as sensitivity
    from meanfield._solve import solve as solve
    from meanfield._spectrum import spectrum as spectrum
    from meanfield._stability_files import write_stability_csv as write_stability_csv
    from meanfield._stability_files import write_stability_latex as write_stability_latex
    from meanfield._stability_report import describe_stability as describe_stability
    from meanfield._stability_report import stability_report as stability_report
    from meanfield._stability_table import CRITERIA as CRITERIA
    from meanfield._stability_table import stability_table as stability_table
else:
    __getattr__, __dir__, __all__ = lazy_door(__name__, __file__)
