"""The minimal naming game of finite populations."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from validation.minimal_naming_game._simulate import simulate as simulate
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
