"""The engine: arrays in, arrays out, in JAX.

A game is an `equinox` module with one method, its Hamiltonian; the rest are its derivatives and their roots. All
functions compose with `jax.jit`, `jax.vmap` and `jax.grad`, on a CPU or a GPU, unless they say otherwise. They check
nothing but shapes and compute in the precision of their arguments: switch on 64 bits with `jax.enable_x64`.

- Games: `WordGame` (in groups by `Hearing`), `ReactionGame`, `RateGame`, `EdgeGame` on a random graph, and `Game`,
  `PairGame` or `Flow` for your own.
- Compositions: `empty_memories`, `composition`, `word_share`.
- Rate equation: `drift`, `trajectory`, `reaction_tensor`.
- Linearisation and noise: `jacobian_product`, `noise_product`, `curvature`.
- Fixed points: `response`, `fixed_point`, `fixed_points`, `implicit_fixed_point`, `critical_mass`.
- Eigenvalues: `leading_eigenvalues` (`Eigenvalues`), `eigenvalue`.
- Rare events: `action` and `log_lifetime`, of a path from `meanfield.escape_path`.
"""

from typing import TYPE_CHECKING

from meanfield.toolbox._lazy_package import lazy_package

if TYPE_CHECKING:
    from meanfield.core._action import action as action
    from meanfield.core._game import Flow as Flow
    from meanfield.core._game import Game as Game
    from meanfield.core._game import PairGame as PairGame
    from meanfield.core._game import RateGame as RateGame
    from meanfield.core._game import ReactionGame as ReactionGame
    from meanfield.core._game import WordGame as WordGame
    from meanfield.core._game import empty_memories as empty_memories
    from meanfield.core._game import word_share as word_share
    from meanfield.core._groups import HEARS as HEARS
    from meanfield.core._groups import Hearing as Hearing
    from meanfield.core._lifetime import log_lifetime as log_lifetime
    from meanfield.core._pairs import EdgeGame as EdgeGame
    from meanfield.core._rates import curvature as curvature
    from meanfield.core._rates import drift as drift
    from meanfield.core._rates import jacobian_product as jacobian_product
    from meanfield.core._rates import noise_product as noise_product
    from meanfield.core._rates import reaction_tensor as reaction_tensor
    from meanfield.core._response import composition as composition
    from meanfield.core._response import response as response
    from meanfield.core._roots import critical_mass as critical_mass
    from meanfield.core._roots import fixed_point as fixed_point
    from meanfield.core._roots import fixed_points as fixed_points
    from meanfield.core._roots import implicit_fixed_point as implicit_fixed_point
    from meanfield.core._spectrum import Eigenvalues as Eigenvalues
    from meanfield.core._spectrum import eigenvalue as eigenvalue
    from meanfield.core._spectrum import leading_eigenvalues as leading_eigenvalues
    from meanfield.core._trajectory import Trajectory as Trajectory
    from meanfield.core._trajectory import trajectory as trajectory
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
