"""The Flag Game of [002]: flags, their crops, and what a crop tells of the country."""

from theory.flag_game._compatibility import crop_compatibility as crop_compatibility
from theory.flag_game._crops import render_crop as render_crop
from theory.flag_game._drawing import draw as draw
from theory.flag_game._drawing import png as png
from theory.flag_game._drawing import render as render
from theory.flag_game._fields import Rival as Rival
from theory.flag_game._fields import crop_fields as crop_fields
from theory.flag_game._fields import signed_field as signed_field
from theory.flag_game._fields import strongest_rival as strongest_rival
from theory.flag_game._flags import COLOURS as COLOURS
from theory.flag_game._flags import FLAGS as FLAGS
from theory.flag_game._flags import Flag as Flag
from theory.flag_game._flags import flag_of as flag_of
from theory.flag_game._measured import measured_compatibility as measured_compatibility
from theory.flag_game._measured import probe_counts as probe_counts
from theory.flag_game._probe import compare_with_probe as compare_with_probe
