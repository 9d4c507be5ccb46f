"""Parts of the theory that simulators use; users need none of it."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from theory.flag_game._pictures.flags import check_pool as check_pool
    from theory.flag_game.mechanism1._agents import played as played
    from theory.flag_game.mechanism1._endpoints import CONSENSUS_PERCENT as CONSENSUS_PERCENT
    from theory.flag_game.mechanism1._endpoints import INTERVAL_LEVEL as INTERVAL_LEVEL
    from theory.flag_game.mechanism1._endpoints import POLAR_PERCENT as POLAR_PERCENT
    from theory.flag_game.mechanism1._endpoints import endpoints_of_votes as endpoints_of_votes
    from theory.minimal_naming_game._rate_equation import check_rule as check_rule
    from theory.minimal_naming_game._rate_equation import checked_answers as checked_answers
    from theory.minimal_naming_game._rate_equation import lexicons as lexicons
    from theory.minimal_naming_game._rate_equation import uttered as uttered
    from theory.norms._model import SHARES as SHARES
    from theory.norms._model import rates_of as rates_of
    from theory.norms._operations import Chances as Chances
    from theory.norms._society import KINDS as KINDS
    from theory.norms._society import STANDARDS as STANDARDS
    from theory.norms._society import agents_of as agents_of
    from theory.norms._society import behaviours_of as behaviours_of
    from theory.norms._states import NormState as NormState
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
