"""The parts of the engine for the other packages of this project; users need none of it."""

from typing import TYPE_CHECKING

from meanfield.toolbox._hidden import require_packages as require_packages
from meanfield.toolbox._lazy_package import lazy_package as lazy_package

if TYPE_CHECKING:
    from meanfield._finite_size.law_path import signed_kappa as signed_kappa
    from meanfield._finite_size.law_path import weak_side as weak_side
    from meanfield._numerics.compiled import compiled as compiled
    from meanfield._numerics.compiled import copy_to as copy_to
    from meanfield._numerics.compiled import in_threads as in_threads
    from meanfield._numerics.compiled import inner as inner
    from meanfield._numerics.compiled import summed as summed
    from meanfield._numerics.roots import all_roots as all_roots
    from meanfield._numerics.stability import stability as stability
    from meanfield._numerics.stability import stability_columns as stability_columns
    from meanfield._plot.words import in_braces as in_braces
    from meanfield._plot.words import model_name as model_name
    from meanfield._population.compositions import validate_composition as validate_composition
    from meanfield._population.observables import MIXED as MIXED
    from meanfield._population.observables import label_of as label_of
    from meanfield._population.population import as_population as as_population
    from meanfield._population.provenance import stamp as stamp
    from meanfield._population.single_policy import labels_of as labels_of
    from meanfield._population.single_policy import name_of as name_of
    from meanfield._population.single_policy import names_of as names_of
    from meanfield._population.single_policy import policy_hash as policy_hash
    from meanfield._population.single_policy import single_policy as single_policy
    from meanfield._population.single_policy import space_of as space_of
    from meanfield._population.single_policy import word_index as word_index
    from meanfield._population.single_policy import word_number as word_number
    from meanfield._population.single_policy import words_of as words_of
    from meanfield._tables.printed_table import PrintedTable as PrintedTable
    from meanfield._tables.stability_table import CRITERIA as CRITERIA
    from meanfield.datasets._ai_norms_tables import past_slots as past_slots
    from meanfield.toolbox._arguments import LARGEST_SEED as LARGEST_SEED
    from meanfield.toolbox._arguments import check_level as check_level
    from meanfield.toolbox._arguments import different as different
    from meanfield.toolbox._arguments import increasing_times as increasing_times
    from meanfield.toolbox._arguments import instance as instance
    from meanfield.toolbox._arguments import is_number as is_number
    from meanfield.toolbox._arguments import one_of as one_of
    from meanfield.toolbox._arguments import one_or_several as one_or_several
    from meanfield.toolbox._arguments import real_number as real_number
    from meanfield.toolbox._arguments import shown as shown
    from meanfield.toolbox._arguments import whole_number as whole_number
    from meanfield.toolbox._columns import labelled as labelled
    from meanfield.toolbox._csv import check_columns as check_columns
    from meanfield.toolbox._csv import column_numbers as column_numbers
    from meanfield.toolbox._csv import column_whole_numbers as column_whole_numbers
    from meanfield.toolbox._csv import number_hint as number_hint
    from meanfield.toolbox._csv import read_csv as read_csv
    from meanfield.toolbox._errors import UnparsedError as UnparsedError
    from meanfield.toolbox._errors import shortened as shortened
    from meanfield.toolbox._expect import expect as expect
    from meanfield.toolbox._files import check_working_folder as check_working_folder
    from meanfield.toolbox._files import existing_file as existing_file
    from meanfield.toolbox._files import path_of as path_of
    from meanfield.toolbox._files import whole_file as whole_file
    from meanfield.toolbox._intervals import exact_interval as exact_interval
    from meanfield.toolbox._intervals import wilson_interval as wilson_interval
    from meanfield.toolbox._labels import canonical_order as canonical_order
    from meanfield.toolbox._labels import in_order as in_order
    from meanfield.toolbox._labels import real_numbers as real_numbers
    from meanfield.toolbox._labels import word_coords as word_coords
    from meanfield.toolbox._memory_budget import check_memory as check_memory
    from meanfield.toolbox._renamed import renamed as renamed
    from meanfield.toolbox._resumable_log import ResumableLog as ResumableLog
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
