// The caption as text, coloured, with a line for each finding. What is typed is read at once: the
// boxes move with it.
import { kPart } from "./caption.js";
import { byId, h, icon } from "./dom.js";
import { jsonText, parseJson, placeInText } from "./json_text.js";
import { obstacleIn } from "./obstacles.js";

const kToken = /("(?:[^"\\\n]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;

// The parts of a line of JSON: [text, class].
function* partsOf(line) {
  let at = 0;
  for (const found of line.matchAll(kToken)) {
    if (found.index > at) yield [line.slice(at, found.index), ""];
    const [all, quoted, colon] = found;
    if (quoted === undefined) yield [all, "value"];
    else if (colon === undefined) yield [quoted, "string"];
    else {
      yield [quoted, "key"];
      yield [colon, ""];
    }
    at = found.index + all.length;
  }
  if (at < line.length) yield [line.slice(at), ""];
}

export class JsonPane {
  constructor(doc, findings) {
    this.doc = doc;
    this.findings = findings;
    this.field = byId("code-text");
    this.view = byId("code-view");
    this.field.addEventListener("input", () => doc.setText(this.field.value, "json"));
    this.field.addEventListener("click", () => this.selectAtCaret());
    for (const target of [doc, findings]) target.addEventListener("change", () => this.update());
    doc.addEventListener("select", () => this.update());
  }

  // The place of a finding in the text; a missing key has that of its owner.
  spanOf(path) {
    for (let at = path; at; at = at.replace(/(?:\.\w+|\[\d+\])$/, "")) {
      const span = this.doc.places.get(at);
      if (span) return span;
      if (at === "$") break;
    }
    return null;
  }

  update() {
    const { text } = this.doc;
    if (this.field.value !== text) this.field.value = text;
    const selected = this.doc.places.get(`$.${kPart}.elements[${this.doc.selected}]`);
    const marked = new Map();
    for (const { path, severity } of this.findings.list) {
      const span = this.spanOf(path);
      if (span) marked.set(placeInText(text, span.from).line, severity);
    }
    if (this.doc.fault) marked.set(placeInText(text, this.doc.fault.at).line, "error");
    let offset = 0;
    const lines = text.split("\n").map((line, i) => {
      const isIn = selected && offset + line.length > selected.from && offset < selected.end;
      offset += line.length + 1;
      const node = h("div", { class: `line ${isIn ? "selected" : ""} ${marked.get(i + 1) ?? ""}` });
      for (const [part, kind] of partsOf(line)) {
        node.append(kind ? h("span", { class: kind }, part) : part);
      }
      if (line === "") node.append("\n");
      return node;
    });
    this.view.replaceChildren(...lines);
    this.showFindings();
  }

  showFindings() {
    this.entries = this.entriesNow();
    const lines = [...this.entries.map((entry, i) => this.line(entry, i)), ...this.endOfFindings()];
    const place = byId("code-findings");
    const said = (nodes) => [...nodes].map(({ outerHTML }) => outerHTML).join("");
    // It is read aloud when it changes: not at each letter that is typed.
    if (said(place.children) !== said(lines)) place.replaceChildren(...lines);
  }

  // [{line, at, sentence, severity}]
  entriesNow() {
    const { doc, findings } = this;
    if (doc.mode === "words") return [];
    const entries = findings.list.map(({ path, rule, severity }) => {
      const span = this.spanOf(path);
      return { line: span ? placeInText(doc.text, span.from).line : 0, at: span?.start ?? 0,
        sentence: path === "$" ? rule : `${path.slice(2)}: ${rule}`, severity };
    });
    if (doc.fault && entries.length === 0) {
      const { line, column } = placeInText(doc.text, doc.fault.at);
      entries.push({ line, at: doc.fault.at, sentence: `column ${column}: ${doc.fault.message}`,
        severity: "error" });
    }
    return entries;
  }

  endOfFindings() {
    const { doc, findings } = this;
    if (doc.mode === "words") {
      return [h("p", { class: "hint" },
        "This is the caption of the boxes. Plain words are rendered now.")];
    }
    if (findings.canonical && !findings.valid) {
      return [h("button", { type: "button", class: "quiet small", onclick: () => this.mend() },
        "Mend what can be mended")];
    }
    if (this.entries.length > 0) return [];
    const obstacle = obstacleIn(doc.value, []);
    return [obstacle ? h("p", { class: "hint" }, obstacle.sentence)
      : h("p", { class: "all-good" }, icon("check"), "Ready to render")];
  }

  line({ line, sentence, severity }, i) {
    return h("button", { type: "button", class: `code-finding ${severity}`, onclick: () =>
      this.goTo(this.entries[i]) },
    h("span", {}, line > 0 ? `Line ${line}` : "Caption"), h("span", {}, sentence));
  }

  goTo({ line, at }) {
    this.field.focus();
    this.field.setSelectionRange(at, at);
    this.view.children[line - 1]?.scrollIntoView({ block: "center" });
  }

  mend() {
    this.doc.setText(jsonText(parseJson(this.findings.canonical).value));
    this.field.focus(); // the button is gone
  }

  // The box whose lines the caret is in.
  selectAtCaret() {
    const at = this.field.selectionStart;
    for (const [path, { start, end }] of this.doc.places) {
      const found = /^\$\.compositional_deconstruction\.elements\[(\d+)\]$/.exec(path);
      if (found && at >= start && at <= end) {
        this.doc.select(Number(found[1]));
        return;
      }
    }
  }
}
