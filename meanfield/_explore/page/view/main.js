// The page: settings, what follows from them, and who shows it.

import { decodedPolicy } from "../engine/policy.js";
import { Calculator } from "./calculator.js";
import { Trajectories, timesFor } from "./trajectories.js";
import { Dots } from "./dots.js";
import { Landscape } from "./landscape.js";
import { Law } from "./law.js";
import { Masses } from "./masses.js";
import { MemoryCard } from "./memory_card.js";
import { Player } from "./player.js";
import {
  hashOf, populationOf, ROUNDS, settingsFrom, SIZES, SPEEDS, startOf, temperatureOf, validSeed,
} from "./settings.js";
import { digits, percent, quoted, say, shown, whole, word } from "./text.js";

const ADDRESS_EVERY = 250; // milliseconds

const get = (id) => document.getElementById(id);
const entries = JSON.parse(get("policies").textContent);
const policies = entries.map(decodedPolicy);

let settings = settingsFrom(location.hash, policies);
const address = { written: -Infinity, timer: 0 };
let played = ""; // the settings of the run being played

const landscape = new Landscape(get("landscape"), get("landscape-says"), get("basins-key"));
const trajectories = new Trajectories(get("trajectories"), get("trajectories-says"), get("basins"));
const law = new Law(get("law"), get("law-says"));
const masses = new Masses(get("masses"), get("masses-says"));
const dots = new Dots(get("dots"));
const player = new Player(showRun);
const card = new MemoryCard(
  {
    slider: get("meetings"),
    count: get("meetings-shown"),
    list: get("meetings-list"),
    sentence: get("memory-says"),
    bar: get("memory-bar").firstElementChild,
  },
  (memory) => change({ memory }),
);

const words = () => policies[settings.policy].words;
const calculators = {
  landscape: calculator("landscape", (found) => landscape.show(words(), found)),
  trajectories: calculator("trajectories", (found, under) => trajectories.show(words(), under.rounds, startText(under.start), found)),
  basins: calculator("basins", (found) => trajectories.showBasins(words(), found), { impatient: true }),
  masses: calculator("masses", (found, under) => masses.show(words(), found, under)),
  law: calculator("law", (found, under) => law.show(words(), found, under), { impatient: true }),
};

/** A calculator whose answers are shown in the place of its kind, those about another policy left out. */
function calculator(kind, show, options) {
  return new Calculator((found, under, another) => {
    const [picture, sentence] = placesOf(kind);
    if (!another) [picture, sentence].forEach((place) => place?.classList.remove("waiting"));
    if (under.policy !== settings.policy) return;
    if (picture) picture.hidden = Boolean(found.error);
    if (found.error) say(sentence, `This could not be computed: ${found.error}.`);
    else show(found, under);
  }, options);
}

/** Where a kind of answers has its picture, if it has one, and its sentence. */
function placesOf(kind) {
  const sentence = get(`${kind}-says`);
  return sentence ? [get(kind), sentence] : [null, get(kind)];
}

/** Asks a calculator; the settings that matter to it are its key. */
function ask(kind, question, matter) {
  placesOf(kind).forEach((place) => place?.classList.add("waiting"));
  calculators[kind].ask({ kind, ...question }, JSON.stringify(matter.map((name) => settings[name])), settings);
}

/** Takes changed settings: into the address, the controls and all that follows from them. */
function change(some) {
  settings = settingsFrom(hashOf({ ...settings, ...some }), policies);
  writeAddress();
  refresh();
}

/** Browsers refuse an address that changes with every move of a slider. */
function writeAddress() {
  clearTimeout(address.timer);
  const wait = address.written + ADDRESS_EVERY - performance.now();
  if (wait > 0) address.timer = setTimeout(writeAddress, wait);
  else {
    history.replaceState(null, "", hashOf(settings));
    address.written = performance.now();
  }
}

function refresh() {
  const policy = policies[settings.policy];
  const population = populationOf(settings, policy);
  const { q, committed, space } = population;
  const question = { q, committed, length: space.length };
  const who = ["policy", "temperature", "committed0", "committed1"];
  showControls(policy);
  ask("landscape", question, who);
  ask("basins", question, who);
  const times = timesFor(settings.rounds);
  ask("trajectories", { ...question, start: startOf(settings), times }, [...who, "start", "rounds"]);
  ask("masses", { ...question, word: settings.picture }, [...who, "picture"]);
  const kappa = policy.kappas[settings.temperature + (policy.kappas.length - 1) / 2]; // measured in the middle
  ask("law", { ...question, kappa }, ["policy", "temperature"]);
  card.show(policy, q, settings.memory);
  refreshRun(population, who);
}

/** A run goes on unless what it depends on has changed. */
function refreshRun(population, who) {
  const { agents: nAgents, seed, speed, rounds } = settings;
  const matter = JSON.stringify([...who, "agents", "start", "seed"].map((name) => settings[name]));
  if (matter === played) player.pace(speed, rounds);
  else {
    played = matter;
    player.restart({ population, nAgents, start: startOf(settings), seed }, speed, rounds);
  }
  showRun(player.run, true);
}

function showRun(run, roundEnded) {
  dots.show(run, run.nAgents * settings.speed);
  get("play").textContent = player.playing ? "Pause" : "Play";
  get("play").setAttribute("aria-pressed", String(player.playing));
  if (!roundEnded) return;
  trajectories.showRun(run.history);
  const share = run.history.at(-1);
  const ending = run.consensus
    ? [" They agreed on ", word(words(), run.consensus.word), ` after ${run.consensus.round} rounds.`]
    : [];
  say(
    get("agents-says"),
    `Of ${whole(run.nAgents)} agents, after `,
    shown("round", run.played, whole(run.played)),
    " rounds, a random one says ",
    word(words(), 0),
    " with a probability of ",
    shown("run-share", share, percent(share)),
    ".",
    ...ending,
  );
}

function startText(start) {
  if (start < 0) return "empty memories";
  const [first, second] = words().map(quoted);
  if (start === 100) return `memories of ${first} only`;
  if (start === 0) return `memories of ${second} only`;
  return `${start} % with memories of ${first} only and the others of ${second} only`;
}

function showControls(policy) {
  const text = (id, value) => (get(id).textContent = value);
  const temperature = temperatureOf(settings, policy);
  const measured = policy.logOdds.length > 0;
  get("policy").value = String(settings.policy);
  setRange("agents", SIZES.indexOf(settings.agents), whole(settings.agents));
  setRange("temperature", settings.temperature, `${measured ? "" : "× "}${digits(temperature, 3)}`);
  text("temperature-note", settings.temperature ? "" : measured ? "(as measured)" : "(of the measured one)");
  for (const w of [0, 1]) setRange(`committed-${w}`, settings[`committed${w}`], percent(settings[`committed${w}`] / 1000));
  setRange("start", settings.start, settings.start < 0 ? "no memories" : `${settings.start} % ${quoted(policy.words[0])}`);
  setRange("speed", SPEEDS.indexOf(settings.speed), `${settings.speed} rounds/s`);
  get("seed").value = String(settings.seed);
  get("rounds").value = String(settings.rounds);
  document.querySelectorAll("[name=picture]").forEach((one) => (one.checked = Number(one.value) === settings.picture));
  for (const w of [0, 1]) {
    document.querySelectorAll(`span.word-${w}:empty, span.word-${w}[data-w]`).forEach((span) => {
      span.dataset.w = String(w);
      span.textContent = quoted(policy.words[w]);
    });
  }
  get("committed-key").hidden = settings.committed0 + settings.committed1 === 0;
  text("memory-length", policy.space.length === 1 ? "meeting" : `${whole(policy.space.length)} meetings`);
  text(
    "temperature-method",
    measured
      ? "from the measured log-probabilities, averaged over the orders in which the prompt names the words"
      : "from the given ones, q to the power measured temperature / temperature, normalised again",
  );
  text("provenance", `${entries[settings.policy].name}, SHA-256 of words and probabilities ${entries[settings.policy].hash}`);
}

function setRange(id, value, shownText) {
  get(id).value = String(value);
  get(id).setAttribute("aria-valuetext", shownText);
  get(`${id}-shown`).textContent = shownText;
}

function listen(id, name, read = (value) => value) {
  get(id).addEventListener("input", () => change({ [name]: read(Number(get(id).value)) }));
}

function prepare() {
  get("policy").append(...entries.map((entry, i) => new Option(entry.name, String(i))));
  get("rounds").append(...ROUNDS.map((rounds) => new Option(whole(rounds), String(rounds))));
  get("agents").max = String(SIZES.length - 1);
  get("speed").max = String(SPEEDS.length - 1);
  get("policy").addEventListener("change", () => change({ policy: Number(get("policy").value), memory: 0 }));
  listen("agents", "agents", (place) => SIZES[place]);
  for (const id of ["temperature", "committed-0", "committed-1", "start", "rounds"]) listen(id, id.replace("-", ""));
  listen("speed", "speed", (place) => SPEEDS[place]);
  get("seed").addEventListener("change", () => {
    const seed = validSeed(get("seed").value);
    change(seed === null ? {} : { seed });
  });
  document.querySelectorAll("[name=picture]").forEach((one) =>
    one.addEventListener("change", () => change({ picture: Number(one.value) })),
  );
  get("play").addEventListener("click", () => {
    if (player.over) restart();
    player.toggle(!player.playing);
  });
  get("step").addEventListener("click", () => player.step());
  get("restart").addEventListener("click", restart);
  get("reseed").addEventListener("click", () => change({ seed: (settings.seed + 1) % Number.MAX_SAFE_INTEGER }));
  addEventListener("hashchange", () => {
    settings = settingsFrom(location.hash, policies);
    refresh();
  });
}

function restart() {
  played = "";
  refresh();
}

prepare();
refresh();
