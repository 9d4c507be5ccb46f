"""Mean-field theory of populations of language models.

A policy gives what an agent says in every memory state. This package turns it into a rate equation, its fixed points,
their eigenvalues and a stability table. Results are datasets of xarray with labels.

- Agents: `make_policy`, `load_policy`, `validate_policy`, `each_policy`, `MemorySpace`, `Population`.
- Initial compositions: `empty_memories`, `consensus`.
- Rate equation: `drift`, `solve`, `basins`. A population round takes `TIME_PER_ROUND` = 2 units of time.
- Fixed points: `fixed_points`, `spectrum`, `stability_table`, `sensitivity`.
- Committed minorities and mixtures: `bifurcation`, `critical_mass`.
- Finite groups: `finite_size`, `group_size_law`, `lifetime`, `escape_path`, `transition_rates`.
- Changes of a policy: `design`.
- Observables of a word share: `convention`, `success_rate`, `entropy`.
- Other games: `ReactionModel`, which `solve`, `fixed_points`, `spectrum`, `bifurcation`, `lifetime` and others also
  accept, `reaction_model`.
- Drawings: `plot`, of any result, and `explore`, a page for a browser.
- Tables and files: `stability_report`, `describe_stability`, `write_stability`, `load`, `save`, `cache_folder`,
  `datasets`.
- Errors, all of them `MeanfieldError`: `InputError`, `ModelError`, `StorageError`, `ConvergenceError`.

`core` is the engine in JAX, for `jax.grad`, `jax.vmap`, `jax.jit` and a GPU: arrays in, arrays out.

`toolbox` serves the packages beside this one.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from meanfield.toolbox._hidden import warn_of_hidden_packages
from meanfield.toolbox._lazy_package import lazy_package

__version__ = version("meanfield-llm")
warn_of_hidden_packages("policy_extraction", "theory", "validation", "paper_figs")

if TYPE_CHECKING:
    from meanfield import core as core
    from meanfield import datasets as datasets
    from meanfield import toolbox as toolbox
    from meanfield._dynamics.basins import basins as basins
    from meanfield._dynamics.solve import solve as solve
    from meanfield._explore.explore import explore as explore
    from meanfield._finite_size.group_size_law import group_size_law as group_size_law
    from meanfield._finite_size.moments import finite_size as finite_size
    from meanfield._fixed_points.fixed_points import fixed_points as fixed_points
    from meanfield._fixed_points.spectrum import spectrum as spectrum
    from meanfield._large_deviations.design import design as design
    from meanfield._large_deviations.escape_path import escape_path as escape_path
    from meanfield._large_deviations.lifetime import lifetime as lifetime
    from meanfield._large_deviations.sensitivity import sensitivity as sensitivity
    from meanfield._large_deviations.transition_rates import transition_rates as transition_rates
    from meanfield._parameters.bifurcation import bifurcation as bifurcation
    from meanfield._parameters.critical_mass import critical_mass as critical_mass
    from meanfield._plot.plot import plot as plot
    from meanfield._population.compositions import consensus as consensus
    from meanfield._population.compositions import empty_memories as empty_memories
    from meanfield._population.drift import TIME_PER_ROUND as TIME_PER_ROUND
    from meanfield._population.drift import drift as drift
    from meanfield._population.observables import convention as convention
    from meanfield._population.observables import entropy as entropy
    from meanfield._population.observables import success_rate as success_rate
    from meanfield._population.policy import load_policy as load_policy
    from meanfield._population.policy import make_policy as make_policy
    from meanfield._population.policy_schema import validate_policy as validate_policy
    from meanfield._population.population import Population as Population
    from meanfield._population.population_model import reaction_model as reaction_model
    from meanfield._population.reaction_model import ReactionModel as ReactionModel
    from meanfield._population.single_policy import each_policy as each_policy
    from meanfield._tables.stability_files import write_stability as write_stability
    from meanfield._tables.stability_report import describe_stability as describe_stability
    from meanfield._tables.stability_report import stability_report as stability_report
    from meanfield._tables.stability_table import stability_table as stability_table
    from meanfield.core._space import MemorySpace as MemorySpace
    from meanfield.toolbox._cache_folder import cache_folder as cache_folder
    from meanfield.toolbox._errors import ConvergenceError as ConvergenceError
    from meanfield.toolbox._errors import InputError as InputError
    from meanfield.toolbox._errors import MeanfieldError as MeanfieldError
    from meanfield.toolbox._errors import ModelError as ModelError
    from meanfield.toolbox._errors import StorageError as StorageError
    from meanfield.toolbox._files import load as load
    from meanfield.toolbox._files import save as save
else:
    __getattr__, __dir__, __all__ = lazy_package(
        __name__,
        __file__,
        former=(
            *("UnparsedError", "dense_tensor", "intervention", "majority_law", "prolong", "reaction_protocol"),
            *("words_of", "write_stability_csv", "write_stability_latex"),
        ),
    )
