"""Population protocols and reaction models of finite populations."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from validation.reactions._protocol import simulate as simulate
    from validation.reactions._transitions import Transition as Transition
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
