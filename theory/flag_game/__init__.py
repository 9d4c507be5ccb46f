"""The Flag Game of [002]: flags, their crops, and the evidence of a crop for each country."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from theory.flag_game import evidence as evidence
    from theory.flag_game import gossip as gossip
    from theory.flag_game import mechanism1 as mechanism1
    from theory.flag_game import mechanism2 as mechanism2
    from theory.flag_game import random_field as random_field
    from theory.flag_game._pictures.compatibility import crop_compatibility as crop_compatibility
    from theory.flag_game._pictures.drawing import draw as draw
    from theory.flag_game._pictures.drawing import png as png
    from theory.flag_game._pictures.drawing import render as render
    from theory.flag_game._pictures.drawing import render_crop as render_crop
    from theory.flag_game._pictures.fields import Rival as Rival
    from theory.flag_game._pictures.fields import crop_fields as crop_fields
    from theory.flag_game._pictures.fields import signed_field as signed_field
    from theory.flag_game._pictures.fields import strongest_rival as strongest_rival
    from theory.flag_game._pictures.flags import COLOURS as COLOURS
    from theory.flag_game._pictures.flags import FLAGS as FLAGS
    from theory.flag_game._pictures.flags import Flag as Flag
    from theory.flag_game._pictures.flags import flag_of as flag_of
    from theory.flag_game._pictures.probe import compare_with_probe as compare_with_probe
    from theory.flag_game._pictures.probe import measured_compatibility as measured_compatibility
    from theory.flag_game._pictures.probe import probe_counts as probe_counts
    from theory.flag_game._summary import summary as summary
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
