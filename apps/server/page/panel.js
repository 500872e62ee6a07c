// The form beside the picture: what is on it, thing by thing, and what holds for all of it.
import {
  backgroundOf, boxOf, elementsOf, isText, kindName, kMostElementColours, kMostStyleColours,
  kSide, paletteOf, setBackground, setBox, setElement, setKind, setStyle, setStyleKind, setSummary,
  styleKind, styleOf, summaryOf, textIn, titleOf, writableElements,
} from "./caption.js";
import { paletteField } from "./colours.js";
import { byId, h, icon, iconButton, show } from "./dom.js";
import { choice, showNotes, textField } from "./fields.js";
import { inFrame, moved } from "./snap.js";

const kColour = /#[0-9a-fA-F]{6}\b/g;
const kPlaces = [["left", "Left"], ["top", "Top"], ["width", "Width"], ["height", "Height"]];

export class Panel {
  // actions: {remove(i), copy(i), shift(i, by), focusBox(i)}
  constructor(doc, findings, guide, actions) {
    this.doc = doc;
    this.findings = findings;
    this.guide = guide; // what the model can paint
    this.actions = actions;
    this.list = byId("elements");
    this.rows = [];
    this.makeWhole();
    this.makeStyle();
    for (const target of [doc, findings]) target.addEventListener("change", () => this.update());
    doc.addEventListener("select", () => this.update());
  }

  edit(index, tag, change) {
    this.doc.change(tag, (root) => {
      const element = writableElements(root)[index];
      if (element instanceof Map) change(element); // else it is mended in the JSON
    });
  }

  // --- one thing ---

  makeRow(index) {
    const set = (key) => (value) =>
      this.edit(index, `${key} ${index}`, (element) => setElement(element, key, value));
    const row = { index };
    row.mark = h("span", { class: "mark" });
    row.name = h("span", { class: "name" });
    row.chip = h("span", { class: "chip" });
    row.head = h("button", { type: "button", class: "head", onclick: () =>
      this.doc.select(this.doc.selected === index ? -1 : index) },
      row.chip, row.name, row.mark);
    row.kind = choice({
      label: "Kind", name: "kind", onchange: (kind) =>
        this.edit(index, "", (element) => setKind(element, kind)),
      options: [{ value: "obj", text: "Object" }, { value: "text", text: "Text" }],
    });
    row.text = textField({ label: "Letters to paint", rows: 2, oninput: set("text"),
      placeholder: "HELLO" });
    row.desc = textField({ label: "Description", rows: 2, oninput: set("desc") });
    row.ideas = h("div", { class: "ideas", role: "group", "aria-label": "What it could be" });
    row.palette = paletteField({ label: "Colours", most: kMostElementColours,
      onchange: (palette, tag) => this.edit(index, tag && `${tag} ${index}`, (element) =>
        setElement(element, "color_palette", palette)) });
    row.place = this.makePlace(index);
    row.general = h("div", { class: "notes" });
    row.body = h("div", { class: "body stack" }, row.general, row.kind.node, row.text.node,
      row.desc.node, row.ideas, row.palette.node, row.place.node, this.makeTools(row));
    row.node = h("li", { class: "element" }, row.head, row.body);
    return row;
  }

  makeTools(row) {
    const { actions } = this;
    const { index } = row;
    row.tools = {
      up: iconButton("up", "Move up in the list", () => actions.shift(index, -1)),
      down: iconButton("down", "Move down in the list", () => actions.shift(index, 1)),
      copy: iconButton("copy", "Duplicate", () => actions.copy(index)),
      remove: iconButton("trash", "Remove", () => actions.remove(index), {
        class: "icon-button danger push" }),
    };
    return h("div", { class: "row tight tools" }, Object.values(row.tools));
  }

  makePlace(index) {
    const notes = h("div", { class: "notes" });
    const inputs = kPlaces.map(([key, label]) => {
      const input = h("input", { type: "number", min: 0, max: kSide, step: 1,
        "aria-label": `${label}, in thousandths of the picture` });
      input.addEventListener("input", () => this.setPlace(index, key, input));
      return [key, h("label", {}, h("span", {}, label), input), input];
    });
    const grid = h("div", { class: "place", role: "group", "aria-label": "Place" },
      inputs.map(([, label]) => label));
    const give = h("button", { type: "button", class: "quiet small", onclick: () => {
      this.edit(index, "", (element) =>
        setBox(element, { top: 300, left: 300, bottom: 700, right: 700 }));
      inputs[0][2].focus(); // this button is gone
    } }, "Give it a place on the picture");
    const node = h("div", { class: "field" },
      h("span", { class: "label" }, "Place, in thousandths of the picture"), grid, give, notes);
    return { node, grid, give, inputs, notes };
  }

  setPlace(index, key, input) {
    const value = input.valueAsNumber;
    const box = boxOf(elementsOf(this.doc.value)[index]);
    if (!Number.isInteger(value) || !box) return;
    let next = box;
    if (key === "left") next = moved(box, value - box.left, 0);
    if (key === "top") next = moved(box, 0, value - box.top);
    if (key === "width") next = inFrame({ ...box, right: box.left + Math.max(1, value) });
    if (key === "height") next = inFrame({ ...box, bottom: box.top + Math.max(1, value) });
    this.edit(index, `place ${index}`, (element) => setBox(element, next));
  }

  showRow(row, element) {
    const { index } = row;
    const isOpen = index === this.doc.selected;
    const about = (field) => this.findings.ofElement(index, field);
    const title = titleOf(element);
    const mine = this.findings.of((place) => place.element === index);
    const isWrong = mine.some(({ severity }) => severity === "error");
    row.node.classList.toggle("open", isOpen);
    row.head.setAttribute("aria-expanded", String(isOpen));
    row.body.hidden = !isOpen;
    row.chip.replaceChildren(icon(isText(element) ? "text" : "object"));
    row.chip.title = kindName(element);
    row.name.textContent = title || "Nothing yet";
    row.name.classList.toggle("empty", !title);
    row.mark.replaceChildren(...(mine.length > 0 ? [icon("warning")] : []));
    row.mark.className = `mark ${isWrong ? "error" : "warning"}`;
    row.head.setAttribute("aria-label", `${kindName(element)} ${index + 1}, ` +
      `${title || "nothing yet"}${mine.length > 0 ? ", with remarks" : ""}`);
    if (!isOpen) return;
    const isObject = element instanceof Map;
    row.kind.show(isText(element) ? "text" : isObject ? element.get("type") : "");
    row.text.node.hidden = !isText(element);
    row.text.show(textIn(element, "text"), about("text"), this.guide.aboutLetters(element));
    row.desc.control.placeholder = isText(element)
      ? "How the letters look" : "What is here, and how it looks";
    row.desc.show(textIn(element, "desc"), about("desc"), this.guide.aboutThing(element));
    this.showIdeas(row, this.guide.ideasFor(element));
    row.palette.show(paletteOf(element), about("color_palette"));
    showNotes(row.general, null, [...about(""), ...about("type")]);
    this.showPlace(row.place, boxOf(element), about("bbox"));
  }

  showIdeas({ ideas, index, desc }, things) {
    ideas.hidden = things.length === 0;
    if (ideas.childElementCount > 0 || things.length === 0) return;
    ideas.append(...things.map((thing) =>
      h("button", { type: "button", class: "idea", onclick: () => {
        this.edit(index, "", (element) => {
          setElement(element, "desc", `A ${thing}`);
          setElement(element, "color_palette", this.guide.coloursOf(thing));
        });
        desc.control.focus();
      } }, thing)));
  }

  showPlace({ grid, give, inputs, notes }, box, findings) {
    grid.hidden = box === null;
    give.hidden = box !== null;
    showNotes(notes, null, findings);
    if (!box) return;
    const values = { left: box.left, top: box.top, width: box.right - box.left,
      height: box.bottom - box.top };
    for (const [key, , input] of inputs) {
      if (input.valueAsNumber !== values[key] && input !== document.activeElement) {
        input.value = String(values[key]);
      }
    }
  }

  // --- the whole ---

  makeWhole() {
    this.background = textField({ label: "Background", rows: 2,
      placeholder: "What is behind everything",
      oninput: (text) => this.doc.change("background", (root) => setBackground(root, text)) });
    this.summary = textField({ label: "The whole picture in a sentence", rows: 2,
      placeholder: "A poster with \u2026", hint: "It should agree with what is in the boxes.",
      oninput: (text) => this.doc.change("summary", (root) => setSummary(root, text)) });
    this.backgroundColours = h("div", { class: "swatches", role: "group",
      "aria-label": "Colours of the background" });
    this.background.control.after(this.backgroundColours);
    byId("whole-fields").append(this.background.node, this.summary.node);
  }

  // Pickers for the colours that its text names.
  showBackgroundColours() {
    const colours = backgroundOf(this.doc.value).match(kColour) ?? [];
    const place = this.backgroundColours;
    while (place.children.length > colours.length) place.lastChild.remove();
    while (place.children.length < colours.length) {
      const i = place.children.length;
      const input = h("input", { type: "color" });
      input.addEventListener("input", () => this.doc.change(`background ${i}`, (root) => {
        let at = 0;
        setBackground(root, backgroundOf(root).replace(kColour, (colour) =>
          at++ === i ? input.value.toUpperCase() : colour));
      }));
      place.append(h("span", { class: "swatch" }, input));
    }
    colours.forEach((colour, i) => {
      const input = place.children[i].firstChild;
      show(input, colour.toLowerCase());
      input.title = colour;
      input.setAttribute("aria-label", `Background, colour ${i + 1}: ${colour}`);
    });
    place.hidden = colours.length === 0;
  }

  makeStyle() {
    const field = (key, label, placeholder) => [key, textField({ label, placeholder, rows: 2,
      oninput: (text) => this.doc.change(key, (root) => setStyle(root, key, text)) })];
    this.kind = choice({ label: "Kind of picture", name: "style",
      onchange: (kind) => this.doc.change("", (root) => setStyleKind(root, kind)),
      options: [{ value: "", text: "Any" }, { value: "photo", text: "Photo" },
        { value: "art", text: "Design" }] });
    this.style = new Map([
      field("aesthetics", "Mood", "festive, warm, hand-made"),
      field("lighting", "Light", "soft, from the left"),
      field("photo", "Camera", "85mm lens, f/8, eye level"),
      field("medium", "Medium", "photograph, illustration, graphic_design, \u2026"),
      field("art_style", "Manner", "screen print in four colours"),
    ]);
    this.stylePalette = paletteField({ label: "Colours of the picture", most: kMostStyleColours,
      onchange: (palette, tag) => this.doc.change(tag && `style ${tag}`, (root) =>
        setStyle(root, "color_palette", palette)) });
    this.styleNotes = h("div", { class: "notes" });
    byId("style-fields").append(this.styleNotes, this.kind.node,
      ...[...this.style.values()].map(({ node }) => node), this.stylePalette.node);
  }

  showStyle() {
    const root = this.doc.value;
    const style = styleOf(root);
    const about = (key) => this.findings.of((place) => place.style === key);
    this.kind.show(styleKind(root));
    for (const [key, field] of this.style) {
      const isShown = style !== null && (style.has(key) || !["photo", "art_style"].includes(key));
      field.node.hidden = !isShown;
      field.show(textIn(style, key), about(key));
    }
    this.stylePalette.node.hidden = style === null;
    this.stylePalette.show(paletteOf(style), about("color_palette"));
    showNotes(this.styleNotes, null, about(""));
    const hasErrors = this.findings.list.some(({ place, severity }) =>
      place.style !== undefined && severity === "error");
    byId("style").classList.toggle("wrong", hasErrors);
  }

  update() {
    const elements = elementsOf(this.doc.value);
    while (this.rows.length > elements.length) this.rows.pop().node.remove();
    while (this.rows.length < elements.length) {
      const row = this.makeRow(this.rows.length);
      this.rows.push(row);
      this.list.append(row.node);
    }
    elements.forEach((element, i) => this.showRow(this.rows[i], element));
    const about = (field) => this.findings.of((place) => place.field === field);
    this.background.show(backgroundOf(this.doc.value), about("background"),
      this.guide.aboutBackground());
    this.showBackgroundColours();
    this.summary.show(summaryOf(this.doc.value), about("summary"));
    this.showStyle();
    showNotes(byId("general-notes"), null, this.findings.of((place) => place.field === "" &&
      place.element === undefined));
    const hint = elements.length === 0
      ? "Nothing yet. Draw a box on the picture, or add one here."
      : this.guide.aboutAll(elements);
    byId("elements-hint").textContent = hint;
    byId("elements-hint").hidden = hint === "";
  }

  // To the thing that took the place of one that is gone, or to where the next is added.
  focusNear(index) {
    const near = this.rows[Math.min(index, this.rows.length - 1)];
    (near?.head ?? byId("add-buttons").firstElementChild).focus();
  }

  // To the button of another row that does the same.
  focusTool(index, name) {
    this.rows[index].tools[name].focus();
  }

  // To the first field of a thing.
  enter(index) {
    this.doc.select(index);
    const row = this.rows[index];
    if (!row) return;
    const isLetters = isText(elementsOf(this.doc.value)[index]);
    (isLetters ? row.text : row.desc).control.focus();
    row.node.scrollIntoView({ block: "nearest" });
  }
}
