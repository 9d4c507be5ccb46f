"""The page as a person uses it: keyboard, narrow and wide, light and dark, shared addresses, play and pause."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import meanfield
from _policies import majority

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked_types")]
SLIDERS = {
    "agents": "agents",
    "temperature": "temperature",
    "committed-0": "committed0",
    "committed-1": "committed1",
    "start": "start",
    "speed": "speed",
    "meetings": "memory",
}
FRAMES_A_SECOND = 30
CONTRAST = 4.5  # of text, as WCAG AA asks
OKABE_ITO = {"#0072b2", "#d55e00", "#56b4e9", "#e69f00"}


@pytest.fixture
def small(tmp_path):
    return meanfield.explore(majority(0.55, 0.9, 2), tmp_path / "explorer.html")


@pytest.mark.parametrize("slider", SLIDERS)
def test_sliders_work_by_keyboard(opened, small, slider):
    shown = opened(small).show()
    before, told = shown.settings.get(SLIDERS[slider]), shown.text(f"{slider}-shown")
    shown.page.focus(f"#{slider}")
    shown.page.keyboard.press("ArrowRight")
    shown.settled()
    assert shown.settings[SLIDERS[slider]] != before
    assert shown.text(f"{slider}-shown") != told
    if slider != "meetings":
        assert shown.page.get_attribute(f"#{slider}", "aria-valuetext") == shown.text(f"{slider}-shown")
    shown.page.keyboard.press("ArrowLeft")
    shown.settled()
    assert shown.text(f"{slider}-shown") == told


def test_every_control_has_a_name_and_is_reached_by_tab(opened, small):
    page = opened(small).show(memory=20).page
    unnamed = """() => [...document.querySelectorAll("input, select, button")]
      .filter((one) => !one.labels?.length && !one.textContent.trim() && !one.ariaLabel).map((one) => one.outerHTML)"""
    assert page.evaluate(unnamed) == []
    wanted = set(
        page.evaluate("[...document.querySelectorAll('input:not([type=radio]), select, button')].map((e) => e.id)")
    )
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert wanted <= reached


@pytest.mark.parametrize(("width", "dark"), [*itertools.product([390, 1440], [False, True])])
def test_narrow_and_wide_light_and_dark(opened, gallery_page, width, dark):
    page = opened(gallery_page, width=width, dark=dark).show(agents=500, committed1=40).page
    page.click("#step")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for element in page.locator(".card, .controls, canvas, .field, button").all():
        box = element.bounding_box()
        assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= width)
    colours = page.evaluate(
        """() => Object.fromEntries(["word-0", "word-1", "ink", "soft", "card", "paper"].map((name) =>
          [name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim()]))"""
    )
    assert {colours["word-0"], colours["word-1"]} <= OKABE_ITO
    assert (luminance(colours["card"]) < luminance(colours["ink"])) == dark
    for text, ground in itertools.product(("ink", "soft"), ("card", "paper")):
        assert contrast(colours[text], colours[ground]) >= CONTRAST, (text, ground)
    for word in ("word-0", "word-1"):
        assert contrast(colours[word], colours["card"]) >= 3, "bold text and dots"


def luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_no_answer_about_another_policy_looks_valid(opened, tmp_path):
    other = meanfield.make_policy(majority(0.53, 0.995, 5)["q"].values, ["c", "d"], model="majority")
    slow = [majority(0.52, 0.995, 5), other]
    shown = opened(meanfield.explore(slow, tmp_path / "explorer.html")).show()
    assert "“a”" in shown.text("law-says")
    shown.page.select_option("#policy", "1")
    stale = """() => [...document.querySelectorAll("[id$=-says], #basins")]
      .filter((one) => /“[ab]”/.test(one.textContent) && !one.closest(".waiting")).map((one) => one.id)"""
    assert shown.page.locator("#law-says.waiting").count() == 1
    for _ in range(20):
        assert shown.page.evaluate(stale) == []
        shown.page.wait_for_timeout(50)
    assert "“c”" in shown.settled().text("law-says")


def test_a_shared_address_is_the_same_view_and_run(opened, gallery_page):
    first = opened(gallery_page).show()
    first.page.select_option("#policy", "4")
    first.page.fill("#seed", "12345")
    first.page.keyboard.press("Tab")
    first.page.focus("#agents")
    first.page.keyboard.press("ArrowLeft")
    first.settled()
    second, address = opened(gallery_page), first.settings
    second.page.goto(first.page.url)
    second.settled()
    assert second.settings == address
    assert (first.settings["policy"], first.settings["seed"]) == (4, 12345)
    for shown in (first, second):
        for _ in range(3):
            shown.page.click("#step")
    for name in ("run-share", "trajectory-200", "fixed-point-0"):
        assert first.number(name) == second.number(name)
    assert first.text("agents-says") == second.text("agents-says")


def test_wrong_addresses_and_seeds_fall_back(opened, small):
    shown = opened(small).show(policy=7, agents=13, temperature=10**9, seed=-1, memory=99999)
    assert [shown.text(f"{name}-shown") for name in ("agents", "temperature", "meetings")] == ["100", "× 1", "0 of 2"]
    shown.page.fill("#seed", "1.5")
    shown.page.keyboard.press("Tab")
    assert shown.page.input_value("#seed") == "1"


def test_play_and_pause(opened, small):
    shown = opened(small).show(rounds=50, speed=10, seed=8)
    shown.page.click("#play")
    assert (shown.text("play"), shown.page.get_attribute("#play", "aria-pressed")) == ("Pause", "true")
    shown.waits(lambda: shown.number("round") >= 3)
    shown.page.click("#play")
    played = shown.number("round")
    shown.page.wait_for_timeout(300)
    assert shown.number("round") == played
    shown.page.click("#restart")
    assert shown.number("round") == 0
    shown.page.click("#reseed")
    assert shown.settings["seed"] == 9


def test_it_plays_to_the_last_round_and_starts_again(opened, small):
    shown = opened(small).show(rounds=20, speed=100)
    shown.page.click("#play")
    shown.waits(lambda: shown.number("round") == 20)
    assert shown.text("play") == "Play"
    shown.page.click("#play")
    shown.waits(lambda: shown.number("round") < 20)


def test_frames_a_second_with_1000_agents(opened, gallery_page):
    shown = opened(gallery_page).show(agents=1000, speed=10, rounds=1000)
    shown.page.click("#play")
    rate = shown.page.evaluate(
        """() => new Promise((done) => {
          let frames = 0;
          const begin = performance.now();
          const count = () => {
            frames += 1;
            const seconds = (performance.now() - begin) / 1000;
            if (seconds < 3) requestAnimationFrame(count);
            else done(frames / seconds);
          };
          requestAnimationFrame(count);
        })"""
    )
    assert rate >= FRAMES_A_SECOND and shown.number("round") >= 15, "at about the speed that was asked for"


def test_words_of_users_are_shown_as_they_are(opened, tmp_path):
    words = ["</script><img src=x onerror=alert(1)>", "<b>&amp;"]
    policy = meanfield.make_policy(np.array([0.5, 0.9, 0.4, 0.6, 0.1]), words, model="<i>m</i>")
    shown = opened(meanfield.explore(policy, tmp_path / "explorer.html"), width=390).show()
    assert words[0] in shown.text("landscape-says")
    assert words[1] in shown.text("agents-says") or words[1] in shown.text("masses-says")
    assert shown.page.locator("img, b, i").count() == 0
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390


NO_WORKERS = "globalThis.Worker = class { constructor() { throw new Error('none'); } };"


def test_what_cannot_be_computed_is_told(opened, small):
    shown = opened(small)
    shown.context.add_init_script(NO_WORKERS + "Math.log = () => { throw new Error('no logarithms'); };")
    shown.show()
    for identity in ("landscape-says", "law-says", "masses-says", "basins"):
        assert shown.text(identity) == "This could not be computed: no logarithms."
    assert shown.number("trajectory-40") > 0.5, "the control, which takes none"


def test_without_workers_the_page_computes_by_itself(opened, tmp_path):
    file = meanfield.explore(majority(0.52, 0.9), tmp_path / "explorer.html")
    shown = opened(file)
    shown.context.add_init_script(NO_WORKERS)
    with_workers = opened(file).show(agents=24).number("probability")
    assert shown.show(agents=24).number("probability") == with_workers


def test_nothing_is_asked_of_a_network(opened, gallery_page):
    shown = opened(gallery_page).show()
    assert [url for url in shown.requests if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


def test_memories_are_chosen_meeting_by_meeting(opened, small):
    shown = opened(small).show()
    policy = majority(0.55, 0.9, 2)
    shown.page.focus("#meetings")
    for _ in range(2):
        shown.page.keyboard.press("ArrowRight")
    space = meanfield.MemorySpace(2, 2)
    for place, (own, partner) in enumerate([(0, 1), (1, 1)]):
        for side, word in enumerate((own, partner)):
            shown.page.locator("#meetings-list select").nth(2 * place + side).select_option(str(word))
    state = space.state([(0, 1), (1, 1)])
    assert shown.settings["memory"] == state
    assert shown.number("memory-probability") == policy["q"].values[state, 0]
