// What the server says of the caption while it is edited, by the place that each sentence names.
import * as api from "./api.js";
import { fieldOfPath } from "./caption.js";

const kWaitMs = 350;
const kNothing = { valid: true, list: [], canonical: "" };

export class Findings extends EventTarget {
  // `isReady()`: whether the server may be asked; before that it may want a key.
  constructor(doc, isReady) {
    super();
    this.doc = doc;
    this.isReady = isReady;
    this.valid = true;
    this.list = []; // {path, rule, severity, fixable, place}
    this.canonical = ""; // the caption with everything mended that can be
    this.timer = 0;
    this.stop = null;
    doc.addEventListener("change", () => this.schedule());
    this.schedule();
  }

  schedule() {
    clearTimeout(this.timer);
    this.stop?.abort();
    this.timer = setTimeout(() => this.check(), kWaitMs);
  }

  // Checks what is in the editor now.
  async check() {
    clearTimeout(this.timer);
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    if (this.doc.mode === "words" || !this.isReady()) {
      this.take(kNothing);
      return;
    }
    const found = await this.ask(this.doc.text, stop.signal);
    if (!stop.signal.aborted) this.take(found);
  }

  // Of a caption that is to be rendered, whatever is typed meanwhile.
  async ofText(text) {
    const found = await this.ask(text);
    if (this.doc.text === text) this.take(found);
    return found;
  }

  async ask(text, signal) {
    try {
      const { valid, findings, canonical } = await api.checkCaption(text, signal);
      const list = findings.map((each) => ({ ...each, place: fieldOfPath(each.path) }));
      return { valid, list, canonical: canonical ?? "" };
    } catch {
      // Rendering says it if the server is gone; nothing is known of the caption meanwhile.
      return kNothing;
    }
  }

  // {valid, list, canonical}
  take(found) {
    Object.assign(this, found);
    this.dispatchEvent(new CustomEvent("change"));
  }

  of(test) {
    return this.list.filter(({ place }) => test(place));
  }

  ofElement(index, field) {
    return this.of((place) => place.element === index && place.field === field);
  }

  hasErrors(index) {
    return this.list.some(({ place, severity }) => place.element === index && severity === "error");
  }
}
