// Size, speed, seed and everything else that is not the caption.
import { byId, h, iconButton, show } from "./dom.js";
import { choice } from "./fields.js";
import { kSpeedNames } from "./report.js";
import { recall, remember } from "./store.js";

const kShapes = [
  ["Square", 1, 1], ["Portrait", 4, 5], ["Poster", 2, 3], ["Story", 9, 16], ["Photo", 3, 2],
  ["Wide", 16, 9],
];
const kShapePixels = 28;
const kMostSeed = 2 ** 32;
const kQuality = 95;

// Sides of this shape with the area of the default size, in multiples of the model's step.
export function sizeOfShape(area, width, height, step) {
  const unit = Math.sqrt(area / (width * height));
  return [width, height].map((side) => Math.max(step, Math.round((side * unit) / step) * step));
}

// Of a size as requests have it.
export function sidesOf(text) {
  const found = /^(\d+)x(\d+)$/.exec(text ?? "");
  return found ? [Number(found[1]), Number(found[2])] : [1024, 1024];
}

export class Settings extends EventTarget {
  constructor() {
    super();
    this.values = { size: "", preset: "", steps: null, seed: null, guidance: null, negative: "",
      n: 1, format: "png", quality: kQuality, loras: [], ...recall("settings") };
    this.model = null;
    this.unread = null; // what was loaded before a model was there
    this.form = byId("settings-form");
    this.form.addEventListener("submit", (event) => event.preventDefault());
  }

  // The model as /v1/models tells of it.
  take(model) {
    this.model = model;
    this.start = sidesOf(model.default_size);
    const { presets = [], loras = [], formats = ["png"] } = model;
    const { values } = this;
    if (!/^\d+x\d+$/.test(values.size) || !this.fits(sidesOf(values.size))) {
      values.size = this.start.join("x");
    }
    if (!presets.some(({ name }) => name === values.preset)) {
      values.preset = (presets.find(({ name }) => name === "default") ?? presets[0])?.name ?? "";
    }
    values.loras = values.loras.filter(({ name }) => loras.includes(name));
    if (!formats.includes(values.format)) values.format = formats[0];
    values.n = Math.min(values.n, model.limits?.images ?? 1);
    if (!model.takes_negative) values.negative = "";
    this.build();
    if (this.unread) this.load(this.unread);
    else this.change();
  }

  get step() {
    return this.model?.token_side || 16;
  }

  get size() {
    return sidesOf(this.values.size);
  }

  fits([width, height]) {
    const most = this.model.limits?.pixels ?? Infinity;
    return width > 0 && height > 0 && width * height <= most && width % this.step === 0 &&
      height % this.step === 0;
  }

  set(key, value) {
    this.values[key] = value;
    this.change();
  }

  change() {
    remember("settings", this.values);
    this.showValues();
    this.dispatchEvent(new CustomEvent("change"));
  }

  // Those of a picture of the gallery, or of a file; what this model does not have stays out.
  load(request) {
    const { values, model } = this;
    this.unread = model ? null : request;
    if (!model) return;
    if (request.size && this.fits(sidesOf(request.size))) values.size = request.size;
    const preset = model.presets?.find((each) => each.name === request.preset);
    if (preset) values.preset = preset.name;
    values.steps = request.steps && request.steps !== preset?.steps ? request.steps : null;
    const guidance = Array.isArray(request.guidance) ? request.guidance : [request.guidance];
    values.guidance = guidance.length === 1 && guidance[0] ? guidance[0] : null;
    if (Number.isSafeInteger(request.seed)) values.seed = request.seed;
    if (model.takes_negative) values.negative = request.negative_prompt ?? "";
    values.loras = (request.lora ?? []).filter(({ name }) => model.loras?.includes(name));
    this.change();
  }

  // The size with these proportions, if this model has more than one.
  setShape([width, height]) {
    if (this.model.prompt === "words") return;
    const [across, along] = this.start;
    const sides = sizeOfShape(across * along, width, height, this.step);
    if (this.fits(sides)) this.set("size", sides.join("x"));
  }

  // For POST /v1/jobs.
  request() {
    const { values, model } = this;
    const request = { size: values.size, n: values.n, output_format: values.format,
      preview_every: 1 };
    if (values.preset) request.preset = values.preset;
    if (values.steps) request.steps = values.steps;
    if (values.guidance !== null) request.guidance = values.guidance;
    if (values.seed !== null) request.seed = values.seed;
    if (values.negative.trim() && model?.takes_negative) request.negative_prompt = values.negative;
    if (values.loras.length > 0) request.lora = values.loras;
    if (values.format !== "png") request.output_compression = values.quality;
    return request;
  }

  // --- the form ---

  build() {
    this.shows = [];
    const advanced = h("details", { class: "group" }, h("summary", {}, "More"),
      h("div", { class: "stack" }, this.stepsField(), this.guidanceField(), this.negativeField(),
        this.formatField()));
    this.form.replaceChildren(...[this.sizeField(), this.speedField(), this.seedField(),
      this.countField(), this.loraField(), advanced].filter(Boolean));
  }

  showValues() {
    for (const each of this.shows ?? []) each();
  }

  numberField(label, key, { min, max, step = 1, placeholder = "", hint = "" }) {
    const id = `setting-${key}`;
    const input = h("input", { type: "number", id, min, max, step, placeholder });
    input.addEventListener("input", () => {
      const value = input.valueAsNumber;
      const isGood = input.value !== "" && input.checkValidity() && Number.isFinite(value);
      this.set(key, isGood ? value : null);
    });
    this.shows.push(() => {
      if (document.activeElement === input) return;
      show(input, this.values[key] === null ? "" : String(this.values[key]));
    });
    return h("div", { class: "field" }, h("label", { for: id }, label), input,
      hint ? h("p", { class: "hint" }, hint) : null);
  }

  sizeField() {
    const [width, height] = this.start;
    const area = width * height;
    const isSmall = this.model.prompt === "words"; // knows its own size alone
    const shapes = (isSmall ? kShapes.slice(0, 1) : kShapes)
      .map(([name, across, along]) => {
        const sides = isSmall ? this.start : sizeOfShape(area, across, along, this.step);
        return { name, ratio: `${across}:${along}`, sides, value: sides.join("x") };
      })
      .filter(({ sides }) => this.fits(sides));
    const buttons = shapes.map(({ name, ratio, sides, value }) => {
      const shape = h("span", { class: "shape" });
      const longer = Math.max(...sides);
      const [across, along] = sides.map((side) => `${(kShapePixels * side) / longer}px`);
      Object.assign(shape.style, { width: across, height: along });
      const button = h("button", { type: "button", class: "size", "data-size": value,
        "aria-label": `${name}, ${sides.join(" by ")} pixels`,
        onclick: () => this.set("size", value) },
      h("span", { class: "shape-box" }, shape), name, h("small", {}, ratio));
      this.shows.push(() =>
        button.setAttribute("aria-pressed", String(this.values.size === value)));
      return button;
    });
    const side = (label, i) => {
      const input = h("input", { type: "number", min: this.step, step: this.step,
        "aria-label": `${label} in pixels` });
      input.addEventListener("change", () => {
        const sides = this.size;
        sides[i] = Math.max(1, Math.round(input.valueAsNumber / this.step)) * this.step;
        this.setSize(sides);
      });
      this.shows.push(() => show(input, String(this.size[i])));
      return input;
    };
    this.sizeNote = h("p", { class: "hint" });
    const swap = iconButton("compare", "Swap width and height", () =>
      this.setSize([...this.size].reverse()));
    const hint = isSmall
      ? `This small model was trained at ${width} \u00d7 ${height} only.`
      : `Multiples of ${this.step} pixels.`;
    this.shows.push(() => (this.sizeNote.textContent = hint));
    return h("div", { class: "group" }, h("h2", {}, "Size"),
      isSmall ? null : h("div", { class: "sizes", role: "group", "aria-label": "Shape" }, buttons),
      h("div", { class: "row" }, side("Width", 0), h("span", { class: "dim" }, "\u00d7"),
        side("Height", 1), swap),
      this.sizeNote);
  }

  setSize(sides) {
    if (sides.every(Number.isFinite) && this.fits(sides)) {
      this.set("size", sides.join("x"));
      return;
    }
    this.showValues();
    const most = this.model.limits?.pixels;
    this.sizeNote.textContent = `Expected multiples of ${this.step} pixels` +
      (most ? `, at most ${(most / 1e6).toFixed(1)} megapixels in all.` : ".");
  }

  speedField() {
    const presets = [...(this.model.presets ?? [])].sort((a, b) => a.steps - b.steps);
    if (presets.length === 0) return null;
    const speed = choice({ label: "Speed", name: "speed",
      options: presets.map(({ name, steps }) => ({ value: name,
        text: kSpeedNames.get(name) ?? name, small: `${steps} steps` })),
      onchange: (preset) => {
        this.values.steps = null;
        this.set("preset", preset);
      } });
    this.shows.push(() => speed.show(this.values.preset));
    return h("div", { class: "group" }, h("h2", {}, "Speed"), speed.node);
  }

  seedField() {
    const kind = choice({ label: "Seed", name: "seed", options: [
      { value: "random", text: "New each time" }, { value: "fixed", text: "Keep" }],
    onchange: (value) => this.set("seed", value === "random" ? null : this.newSeed()) });
    const input = h("input", { type: "number", min: 0, step: 1, "aria-label": "Seed" });
    input.addEventListener("input", () => {
      if (Number.isSafeInteger(input.valueAsNumber) && input.valueAsNumber >= 0) {
        this.set("seed", input.valueAsNumber);
      }
    });
    const row = h("div", { class: "row" }, input,
      iconButton("dice", "Another seed", () => this.set("seed", this.newSeed())));
    this.shows.push(() => {
      kind.show(this.values.seed === null ? "random" : "fixed");
      row.hidden = this.values.seed === null;
      if (document.activeElement !== input) show(input, String(this.values.seed ?? ""));
    });
    return h("div", { class: "group" }, h("h2", {}, "Seed"), kind.node, row,
      h("p", { class: "hint" }, "The same seed, caption and settings make the same picture."));
  }

  newSeed() {
    return Math.floor(Math.random() * kMostSeed);
  }

  countField() {
    const most = this.model.limits?.images ?? 1;
    if (most < 2) return null;
    const counts = Array.from({ length: Math.min(most, 4) }, (_, i) => String(i + 1));
    const count = choice({ label: "Pictures at once", name: "count",
      options: counts.map((value) => ({ value, text: value })),
      onchange: (value) => this.set("n", Number(value)) });
    this.shows.push(() => count.show(String(this.values.n)));
    return h("div", { class: "group" }, h("h2", {}, "Pictures at once"), count.node);
  }

  loraField() {
    const names = this.model.loras ?? [];
    if (names.length === 0) return null;
    const rows = names.map((name, i) => {
      const id = `lora-${i}`;
      const box = h("input", { type: "checkbox", id });
      const range = h("input", { type: "range", min: 0, max: 2, step: 0.05, value: 1,
        "aria-label": `Strength of ${name}` });
      const number = h("output", { for: id });
      const change = () => {
        const others = this.values.loras.filter((each) => each.name !== name);
        const mine = { name, strength: range.valueAsNumber };
        this.set("loras", box.checked ? [...others, mine] : others);
      };
      box.addEventListener("change", change);
      range.addEventListener("input", change);
      this.shows.push(() => {
        const mine = this.values.loras.find((each) => each.name === name);
        box.checked = mine !== undefined;
        if (mine) range.valueAsNumber = mine.strength;
        range.disabled = !mine;
        number.textContent = range.valueAsNumber.toFixed(2);
      });
      return h("div", { class: "lora" }, box, h("label", { for: id }, name), range, number);
    });
    return h("div", { class: "group" }, h("h2", {}, "LoRAs"), rows);
  }

  stepsField() {
    return this.numberField("Steps", "steps", { min: 1, max: this.model.limits?.steps ?? 100,
      placeholder: "set by Speed" });
  }

  guidanceField() {
    return this.numberField("Guidance", "guidance", { min: 1, max: 20, step: 0.1,
      placeholder: "set by Speed",
      hint: "How closely the picture keeps to the caption; 1 is faster, and looser." });
  }

  negativeField() {
    if (!this.model.takes_negative) return null;
    const input = h("textarea", { id: "negative", rows: 2 });
    input.addEventListener("input", () => this.set("negative", input.value));
    this.shows.push(() => show(input, this.values.negative));
    return h("div", { class: "field" }, h("label", { for: "negative" }, "What to avoid"), input);
  }

  formatField() {
    const formats = this.model.formats ?? ["png"];
    if (formats.length < 2) return null;
    const format = choice({ label: "File", name: "format",
      options: formats.map((value) => ({ value, text: value.toUpperCase() })),
      onchange: (value) => this.set("format", value) });
    const quality = this.numberField("Quality of the file", "quality", { min: 1, max: 100 });
    this.shows.push(() => {
      format.show(this.values.format);
      quality.hidden = this.values.format === "png";
    });
    return h("div", { class: "stack" }, h("div", { class: "field" },
      h("span", { class: "label" }, "File"), format.node), quality);
  }
}
