"""The Flag Game in finite populations: gossip, Mechanism 1, endpoints, teams of two models."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from validation.flag_game._composition import compare_composition as compare_composition
    from validation.flag_game._composition import predict_composition as predict_composition
    from validation.flag_game._composition import sample_crops as sample_crops
    from validation.flag_game._endpoints import accuracy as accuracy
    from validation.flag_game._endpoints import endpoints as endpoints
    from validation.flag_game._gossip import simulate_gossip as simulate_gossip
    from validation.flag_game._mechanism1 import compare as compare
    from validation.flag_game._mechanism1 import simulate as simulate
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
