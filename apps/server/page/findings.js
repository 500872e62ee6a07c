// What the server says of the caption while it is edited, by the place that each sentence names.
import * as api from "./api.js";
import { fieldOfPath } from "./caption.js";

const kWaitMs = 350;

export class Findings extends EventTarget {
  // `isReady()`: whether the server may be asked; before that it may want a key.
  constructor(doc, isReady) {
    super();
    this.doc = doc;
    this.isReady = isReady;
    this.list = []; // {path, rule, severity, fixable, place}
    this.canonical = ""; // the caption with everything mended that can be
    this.valid = true;
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

  // Resolves when what is in the editor now has been checked.
  async check() {
    clearTimeout(this.timer);
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    if (this.doc.mode === "words" || !this.isReady()) {
      this.take({ valid: true, findings: [], canonical: "" });
      return;
    }
    try {
      const answer = await api.checkCaption(this.doc.text, stop.signal);
      if (!stop.signal.aborted) this.take(answer);
    } catch (error) {
      // Rendering says it if the server is gone; nothing is known of the caption meanwhile.
      if (error.name !== "AbortError") this.take({ valid: true, findings: [], canonical: "" });
    }
  }

  take({ valid, findings, canonical }) {
    this.valid = valid;
    this.canonical = canonical ?? "";
    this.list = findings.map((each) => ({ ...each, place: fieldOfPath(each.path) }));
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

  // Those that keep the caption from being rendered, and that Octet cannot mend by itself.
  get blocking() {
    return this.list.filter(({ severity, fixable }) => severity === "error" && !fixable);
  }
}
