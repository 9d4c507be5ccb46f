"""The Flag Game: drawings, crops, what an ideal observer makes of them, and signed fields."""

import io
from collections import Counter
from fractions import Fraction
from itertools import product

import matplotlib.image
import numpy as np
import pytest
import xarray as xr

import meanfield
import theory.flag_game as game
from meanfield import InputError

NUMBER = {colour: i for i, colour in enumerate(game.COLOURS)}
SMALL = {"canvas": (7, 5), "crop": (3, 2), "scale": 2}
TINY_POOL = (
    game.Flag("A", "horizontal", ("red", "white", "black")),
    game.Flag("B", "vertical", ("red", "white", "red")),
    game.Flag("C", "horizontal", ("white", "red"), "black", Fraction(1, 3)),
    game.Flag("D", "horizontal", ("red", "white", "red")),
)


def letters(flag, width, height):
    """The drawing, a letter a cell: the first of its colour's name."""
    initials = [colour[0] for colour in game.COLOURS]
    return ["".join(initials[number] for number in row) for row in game.draw(flag, width, height)]


# --- drawing ---


@pytest.mark.parametrize(("cells", "n", "expected"), [(16, 3, [5, 6, 5]), (400, 3, [133, 134, 133]), (5, 2, [2, 3])])
def test_widths_of_stripes(cells, n, expected):
    stripes = ("red", "white", "black")[:n]
    by_rows = game.draw(game.Flag("A", "horizontal", stripes), 4, cells)
    by_columns = game.draw(game.Flag("A", "vertical", stripes), cells, 4)
    np.testing.assert_array_equal(by_rows, by_columns.T)
    assert (by_rows == by_rows[:, :1]).all()
    assert [(by_rows[:, 0] == NUMBER[colour]).sum() for colour in stripes] == expected
    assert (np.diff([stripes.index(list(NUMBER)[number]) for number in by_rows[:, 0]]) >= 0).all(), "in their order"


def test_triangle():
    """Worked by hand: in column c, row r of 6 × 4 cells (2c + 1)/12 against (1 - |(2r + 1)/4 - 1|)/2."""
    assert letters(game.flag_of("Czech Republic"), 6, 4) == ["bwwwww", "bbwwww", "bbrrrr", "brrrrr"]
    edge = game.Flag("A", "horizontal", ("white", "red"), "black", Fraction(1))
    assert letters(edge, 3, 2) == ["bbw", "bbr"], "the centre of the middle column lies on the edge"


@pytest.mark.parametrize("flag", game.FLAGS, ids=lambda flag: flag.country)
def test_finer_drawings_are_the_same_flag(flag):
    """The middle pixel of a cell is the cell's centre."""
    fine = game.draw(flag, 24 * 25, 16 * 25)
    np.testing.assert_array_equal(fine[12::25, 12::25], game.draw(flag))


def test_render():
    picture = game.render(game.flag_of("France"))
    assert picture.shape == (400, 600, 3) and picture.dtype == np.uint8
    for column, colour in ((0, "blue"), (199, "blue"), (200, "white"), (399, "white"), (400, "red"), (599, "red")):
        assert (picture[:, column] == game.COLOURS[colour]).all()
    borders = np.flatnonzero((np.diff(game.render(game.flag_of("Yemen")).astype(int), axis=0) != 0).any((1, 2))) + 1
    assert borders.tolist() == [133, 267], "stripes of 16 / 3 cells, not of whole ones"


def test_png_is_read_back():
    picture = game.render_crop(game.flag_of("Bahamas"), 4, 5, scale=3)
    read = matplotlib.image.imread(io.BytesIO(game.png(picture)), format="png")
    np.testing.assert_array_equal((read * 255).round().astype(np.uint8), picture)


def test_no_two_flags_look_alike():
    assert len({game.draw(flag).tobytes() for flag in game.FLAGS}) == len(game.FLAGS) == 28
    assert len({flag.country for flag in game.FLAGS}) == 28


# --- crop compatibility ---


def crops_by_hand(flag, canvas=(24, 16), crop=(6, 4), scale=1):
    """The pixels of each crop, row by row from the top left."""
    pixels = game.draw(flag, canvas[0] * scale, canvas[1] * scale)
    return [
        pixels[y * scale : (y + crop[1]) * scale, x * scale : (x + crop[0]) * scale].ravel()
        for y, x in product(range(canvas[1] - crop[1] + 1), range(canvas[0] - crop[0] + 1))
    ]


@pytest.mark.parametrize("scale", [1, 3])
@pytest.mark.parametrize("counting", ["positions", "countries"])
@pytest.mark.parametrize("country", ["Yemen", "Palestine"])
def test_without_noise_equal_pictures_are_counted(country, counting, scale):
    shown = [Counter(c.tobytes() for c in crops_by_hand(flag, scale=scale)) for flag in game.FLAGS]
    own = [c.tobytes() for c in crops_by_hand(game.flag_of(country), scale=scale)]
    times = np.array([[one[crop] for one in shown] for crop in own], dtype=float)
    expected = times if counting == "positions" else (times > 0).astype(float)
    p = game.crop_compatibility(country, counting=counting, scale=scale)
    assert p.dims == ("crop", "country") and p.sizes == {"crop": 19 * 13, "country": 28}
    np.testing.assert_allclose(p, expected / expected.sum(1, keepdims=True), rtol=1e-12)
    assert len(set(p["picture"].values)) == len(set(own))
    assert len(set(zip(own, p["picture"].values, strict=True))) == len(set(own)), "a picture has one number"


@pytest.mark.parametrize("counting", ["positions", "countries"])
@pytest.mark.parametrize(("scale", "noise"), [(2, 0.2), (1, 0.95)])
def test_noise_is_the_stated_likelihood(counting, scale, noise):
    """Term by term, in the logarithms of the docstring's formula."""
    layout = SMALL | {"scale": scale}
    seen = {flag.country: np.array(crops_by_hand(flag, **layout)) for flag in TINY_POOL}
    p = game.crop_compatibility("C", flags=TINY_POOL, noise=noise, counting=counting, **layout)
    cells = 3 * 2
    for i, crop in enumerate(seen["C"]):
        terms = []
        for pictures in seen.values():
            differing = (pictures != crop).sum(1) / scale**2
            logs = (cells - differing) * np.log(1 - noise) + differing * np.log(noise / 7)
            terms.append(np.exp(logs).mean() if counting == "positions" else np.exp(logs).max())
        np.testing.assert_allclose(p[i], np.array(terms) / np.sum(terms), rtol=1e-10)


def test_crops_lie_where_their_coordinates_say():
    p = game.crop_compatibility("B", flags=TINY_POOL, **SMALL)
    by_hand = crops_by_hand(TINY_POOL[1], **SMALL)
    for i in range(p.sizes["crop"]):
        crop = game.render_crop(TINY_POOL[1], int(p["left"][i]), int(p["top"][i]), **SMALL)
        np.testing.assert_array_equal(crop.reshape(-1, 3), np.array(list(game.COLOURS.values()))[by_hand[i]])


def test_no_guess_is_right_more_often():
    """The share of right guesses over all flags and positions; a guess is a function of the picture.

    The best function is found by brute force from the joint counts; the uniform one over compatible countries is a
    control that must do worse.
    """
    shown = [Counter(c.tobytes() for c in crops_by_hand(flag, scale=3)) for flag in game.FLAGS]
    best = sum(max(one[picture] for one in shown) for picture in set().union(*shown)) / (28 * 247)

    def accuracy(counting):
        right = 0.0
        for flag in game.FLAGS:
            p = game.crop_compatibility(flag.country, counting=counting, scale=3)
            largest = p == p.max("country")
            right += (largest.sel(country=flag.country) / largest.sum("country")).mean().item()
        return right / 28

    assert accuracy("positions") == pytest.approx(best, rel=1e-12)
    assert accuracy("countries") < best - 0.03


@pytest.mark.parametrize("counting", ["positions", "countries"])
def test_limits_of_the_noise(counting):
    hard = game.crop_compatibility("Yemen", counting=counting, scale=1)
    soft = game.crop_compatibility("Yemen", counting=counting, scale=1, noise=1e-9)
    np.testing.assert_allclose(soft, hard, atol=1e-7)
    assert (soft > 0).all() and (hard == 0).any()
    blind = game.crop_compatibility("Yemen", counting=counting, noise=7 / 8)
    np.testing.assert_allclose(blind, 1 / 28, rtol=1e-9)


def test_results_do_not_share_memory():
    first = game.crop_compatibility("Chad")
    first[:] = 0
    assert (game.crop_compatibility("Chad").sum("country") > 0.999).all()


# --- fields ---


def test_the_strongest_rival_of_france_is_peru():
    """[002] Appendix E says so; counting countries cannot tell Peru from Italy."""
    rival = game.strongest_rival(game.crop_compatibility("France"), "France")
    assert (rival.country, rival.tied) == ("Peru", ())
    p = game.crop_compatibility("France", counting="countries")
    tied = game.strongest_rival(p, "France")
    assert (tied.country, tied.tied) == ("Italy", ("Peru",))
    assert tied.mean_compatibility == pytest.approx(p.sel(country="Peru").mean().item())


def compatibility(p, countries="TRX", **coords):
    """A (crop, country) table; crops lie side by side unless coords tell otherwise."""
    p = np.asarray(p, dtype=float)
    place = {"left": ("crop", np.arange(len(p))), "top": ("crop", np.zeros(len(p), int))} | coords
    return xr.DataArray(p, dims=("crop", "country"), coords={"country": list(countries)} | place)


def test_rivals_that_differ_by_rounding_are_tied():
    p = compatibility([[0.4, 0.3, 0.1 + 0.2]])
    assert p[0, 1] < p[0, 2]
    rival = game.strongest_rival(p, "T")
    assert (rival.country, rival.tied, rival.mean_compatibility) == ("R", ("X",), pytest.approx(0.3))
    assert game.strongest_rival(compatibility([[0.4, 0.3 - 1e-6, 0.3 + 1e-6]]), "T").tied == ()


def test_signed_field():
    p = compatibility([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    field = game.signed_field(p, "T", "R")
    np.testing.assert_allclose(field, [np.log(2), 0, np.inf, -np.inf])
    assert field.attrs["infinite"] == 2 and field.dims == ("crop",)
    np.testing.assert_array_equal(game.signed_field(p, "R", "T"), -field)
    np.testing.assert_array_equal(game.signed_field(p.T, "T", "R"), field)


def test_ideal_field_of_yemen():
    """Worked by hand. Austria's red is at both ends, so an all-red crop is seen there twice as often."""
    p = game.crop_compatibility("Yemen")
    field = game.signed_field(p, "Yemen", "Austria").values.reshape(13, 19)
    assert (field == field[:, :1]).all()
    np.testing.assert_allclose(field[:, 0], [-np.log(2)] * 2 + [0] * 5 + [np.inf] * 6, atol=1e-12)


def test_crop_fields():
    p = compatibility(
        [[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.5, 0, 0.5], [0.1, 0.4, 0.5]],
        left=("crop", [2, 5, 2, 4]),
        top=("crop", [1, 1, 3, 3]),
    )
    fields = game.crop_fields(p, "T", "R", bins=3)
    assert fields["field"].sizes == {"top": 3, "left": 4}
    assert fields["top"].values.tolist() == [1, 2, 3] and fields["left"].values.tolist() == [2, 3, 4, 5]
    assert fields["field"].sel(top=1, left=2).item() == pytest.approx(np.log(2))
    assert fields["field"].sel(top=3, left=2).item() == np.inf
    assert fields["field"].sel(top=3, left=4).item() == pytest.approx(-np.log(4))
    assert fields["field"].isnull().sum() == 8
    np.testing.assert_allclose(fields["low"], np.log(4) * np.array([-1, -1 / 3, 1 / 3]))
    np.testing.assert_allclose(fields["probability"], [0.25, 0.25, 0.25])
    assert fields["surely_truth"] == 0.25 and fields["surely_rival"] == 0


def test_no_crop_is_lost_in_the_distribution(tmp_path):
    p = game.crop_compatibility("Sudan")
    fields = game.crop_fields(p, "Sudan", game.strongest_rival(p, "Sudan").country)
    total = fields["probability"].sum() + fields["surely_truth"] + fields["surely_rival"]
    assert total.item() == pytest.approx(1, abs=1e-12)
    assert fields["field"].notnull().all() and fields["field"].size == 247
    xr.testing.assert_identical(meanfield.load(meanfield.save(fields, tmp_path / "fields.nc")), fields)


def test_measured_compatibility():
    counts = compatibility([[50, 0], [20, 30]], "TR")
    p = game.measured_compatibility(counts, pseudo_count=0.5)
    np.testing.assert_allclose(p, [[50.5 / 51, 0.5 / 51], [20.5 / 51, 30.5 / 51]])
    assert game.signed_field(p, "T", "R").values[0] == pytest.approx(np.log(101))
    shares = game.measured_compatibility(counts, pseudo_count=0)
    np.testing.assert_array_equal(shares, [[1, 0], [0.4, 0.6]])
    assert game.signed_field(shares, "T", "R").attrs["infinite"] == 1
    np.testing.assert_array_equal(game.measured_compatibility(0 * counts, pseudo_count=1), 0.5)


# --- what is refused ---

YEMEN = game.flag_of("Yemen")
TWO = compatibility([[0.5, 0.5], [1, 0]], "TR")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: game.Flag("", "vertical", ("red",)), "country = '': expected a name"),
        (lambda: game.Flag("A", "diagonal", ("red",)), "A: orientation = 'diagonal': expected horizontal or vertical"),
        (lambda: game.Flag("A", "vertical", "red"), "A: stripes = 'red': expected a tuple"),
        (lambda: game.Flag("A", "vertical", ("red",), "pink"), "A: colour 'pink': expected one of red"),
        (lambda: game.Flag("A", "vertical", ("red",), "red", Fraction(3, 2)), "triangle_depth = .*at most 1"),
        (lambda: game.flag_of("Atlantis"), "country = 'Atlantis': expected one of Armenia"),
        (lambda: game.draw("Yemen"), "flag = 'Yemen': expected a Flag"),
        (lambda: game.draw(YEMEN, 24, 2), "Yemen: 3 horizontal stripes on 2 cells"),
        (lambda: game.render_crop(YEMEN, 19, 0), "left = 19: expected 0 to 18"),
        (lambda: game.png(np.zeros((4, 4), np.uint8)), r"picture has uint8 \(4, 4\): expected uint8 of shape"),
        (lambda: game.crop_compatibility("Yemen", flags=(YEMEN, YEMEN)), "flags holds Yemen 2 times"),
        (lambda: game.crop_compatibility("Yemen", flags=()), "expected at least one Flag, and nothing else"),
        (lambda: game.crop_compatibility("Yemen", noise=1.0), "noise = 1.0: expected a number"),
        (lambda: game.crop_compatibility("Yemen", counting="flags"), "counting = 'flags': expected 'positions' or"),
        (lambda: game.crop_compatibility("Yemen", crop=(25, 4)), r"crop = \(25, 4\): expected at most the canvas"),
        (lambda: game.crop_compatibility("Yemen", crop=6), r"crop = 6: expected \(width, height\)"),
        (lambda: game.strongest_rival(TWO, "X"), "truth = 'X': expected one of T, R"),
        (lambda: game.strongest_rival(compatibility([[1]], "T"), "T"), "no country but T: expected a rival"),
        (lambda: game.signed_field(TWO, "T", "T"), "rival = 'T': expected another country"),
        (lambda: game.signed_field(compatibility([[0, 0, 1]]), "T", "R"), "neither T nor R is compatible with crop 0"),
        (lambda: game.signed_field(TWO.values, "T", "R"), "compatibility: expected a DataArray over crop and country"),
        (lambda: game.signed_field(2 * TWO, "T", "R"), "expected probabilities, in rows that sum to 1"),
        (lambda: game.crop_fields(TWO, "T", "R", bins=[1, 0]), "expected at least two borders, rising"),
        (lambda: game.crop_fields(TWO, "T", "R", bins=[1, 2]), "bins reach from 1 to 2: expected bins that hold 0"),
        (lambda: game.crop_fields(TWO, "T", "R", bins="auto"), "bins = 'auto': expected a number of bins"),
        (lambda: game.crop_fields(TWO.drop_vars("left"), "T", "R"), "expected coordinates left and top"),
        (lambda: game.crop_fields(TWO.assign_coords(left=0 * TWO["left"]), "T", "R"), "2 crops at left = 0, top = 0"),
        (lambda: game.measured_compatibility(TWO), "counts: found 0.5, expected whole numbers"),
        (lambda: game.measured_compatibility(np.ones((2, 2))), "counts: expected a DataArray over crop and country"),
        (lambda: game.measured_compatibility(0 * TWO, pseudo_count=0), "no answer to crop 0"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
