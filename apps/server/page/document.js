// The caption that is being edited: its text, what the text says, what is selected, and the way
// back. The text is the truth; a form changes the value, and the text is written anew.
import { copyOf, jsonText, JsonFault, parseJson } from "./json_text.js";
import { elementsOf, emptyCaption } from "./caption.js";

const kMostSteps = 300; // back
const kOneEditMs = 900; // keystrokes within this time are undone together

export class CaptionDocument extends EventTarget {
  constructor() {
    super();
    this.text = jsonText(emptyCaption());
    this.mode = "boxes"; // or "words"
    this.prompt = ""; // the plain words of that mode
    this.selected = -1;
    this.past = [];
    this.future = [];
    this.lastTag = "";
    this.lastEdit = 0;
    this.read();
  }

  // {value, places} of the text; while it cannot be read, `value` is what it said last.
  read() {
    try {
      const { value, places } = parseJson(this.text);
      if (!(value instanceof Map)) throw new JsonFault("a caption begins with {", 0);
      this.value = value;
      this.places = places;
      this.fault = null;
    } catch (fault) {
      if (!(fault instanceof JsonFault)) throw fault;
      this.fault = fault;
      this.places = new Map();
    }
    if (this.selected >= elementsOf(this.value).length) this.selected = -1;
  }

  tell(kind) {
    this.dispatchEvent(new CustomEvent(kind));
  }

  state() {
    return { text: this.text, mode: this.mode, prompt: this.prompt, selected: this.selected };
  }

  // Edits with the same tag in quick succession are one step back.
  remember(tag) {
    const now = performance.now();
    const goesOn = tag !== "" && tag === this.lastTag && now - this.lastEdit < kOneEditMs;
    if (!goesOn) {
      this.past.push(this.state());
      if (this.past.length > kMostSteps) this.past.shift();
    }
    this.future = [];
    this.lastTag = tag;
    this.lastEdit = now;
  }

  // edit(root) changes a copy of the value. False while the text cannot be read.
  change(tag, edit) {
    if (this.fault) {
      this.tell("refused");
      return false;
    }
    const value = copyOf(this.value);
    edit(value);
    return this.setText(jsonText(value), tag);
  }

  // A whole gesture, such as a drag, is one step.
  endEdit() {
    this.lastTag = "";
  }

  setText(text, tag = "") {
    if (text === this.text) return true;
    this.remember(tag);
    this.text = text;
    this.read();
    this.tell("change");
    return true;
  }

  setPrompt(prompt) {
    if (prompt === this.prompt) return;
    this.remember("prompt");
    this.prompt = prompt;
    this.tell("change");
  }

  setMode(mode) {
    if (mode === this.mode) return;
    this.remember("");
    this.mode = mode;
    this.tell("change");
  }

  // Another caption or prompt, as one step that can be undone.
  replace({ text = this.text, mode = this.mode, prompt = this.prompt }) {
    this.remember("");
    Object.assign(this, { text, mode, prompt, selected: -1 });
    this.read();
    this.tell("change");
    this.tell("select");
  }

  select(index) {
    if (index === this.selected) return;
    this.selected = index;
    this.endEdit();
    this.tell("select");
  }

  restore(from, to) {
    const state = from.pop();
    if (!state) return;
    to.push(this.state());
    Object.assign(this, state);
    this.endEdit();
    this.read();
    this.tell("change");
    this.tell("select");
  }

  undo() {
    this.restore(this.past, this.future);
  }

  redo() {
    this.restore(this.future, this.past);
  }
}
