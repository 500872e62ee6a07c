// The frame with the picture and the boxes on it: drawn, moved and resized with a pointer or with
// keys. Boxes are elements of the page, so that everybody can reach them.
import {
  boxOf, elementsOf, isColour, isText, kindName, kSide, newElement, paletteOf, setBox, textIn,
  backgroundOf, titleOf, writableElements,
} from "./caption.js";
import { announce, byId, h, icon } from "./dom.js";
import { fitLetters } from "./letters.js";
import { inFrame, moved, snapped } from "./snap.js";

const kLeastDrag = 4; // pixels; less is a click
const kLeastBox = 12; // thousandths, of a box that is drawn
const kReach = 6; // pixels within which edges attract
const kSides = ["top", "left", "bottom", "right"];

export function placeInWords(box) {
  const percent = (part) => `${Math.round(part / 10)} %`;
  return `${percent(box.left)} from the left, ${percent(box.top)} from the top, ` +
    `${percent(box.right - box.left)} wide, ${percent(box.bottom - box.top)} high`;
}

export class Canvas {
  // actions: {add(kind, box), remove(i), edit(i)}
  constructor(doc, findings, actions) {
    this.doc = doc;
    this.findings = findings;
    this.actions = actions;
    this.frame = byId("frame");
    this.layer = byId("boxes");
    this.nodes = [];
    this.tool = "select";
    this.gesture = null;
    this.frame.addEventListener("pointerdown", (event) => this.begin(event));
    this.frame.addEventListener("pointermove", (event) => this.drag(event));
    this.frame.addEventListener("pointerup", () => this.end());
    this.frame.addEventListener("pointercancel", () => this.end(true));
    this.layer.addEventListener("keydown", (event) => this.key(event));
    doc.addEventListener("change", () => this.update());
    doc.addEventListener("select", () => this.update());
    findings.addEventListener("change", () => this.update());
  }

  setTool(tool) {
    this.tool = tool;
    this.frame.classList.toggle("drawing", tool !== "select");
  }

  setRatio(width, height) {
    this.frame.style.setProperty("--ratio", String(width / height));
  }

  // --- showing ---

  update() {
    const elements = elementsOf(this.doc.value);
    const isWords = this.doc.mode === "words";
    this.layer.hidden = isWords;
    while (this.nodes.length > elements.length) this.nodes.pop().remove();
    while (this.nodes.length < elements.length) this.nodes.push(this.makeNode());
    elements.forEach((element, i) => this.showBox(this.nodes[i], element, i));
    this.paintPaper();
    const hint = byId("frame-hint");
    hint.hidden = isWords || elements.length > 0 || this.frame.classList.contains("painted");
    hint.textContent = "Drag here to draw a box for the first thing.";
    this.showNote(elements);
  }

  // What can be done next, or where the selected box is.
  showNote(elements) {
    const index = this.doc.selected;
    const box = boxOf(elements[index]);
    const note = byId("stage-note");
    if (this.doc.mode === "words" || elements.length === 0) note.textContent = "";
    else if (!box) note.textContent = "Drag on the picture to add a box. Choose one to change it.";
    else {
      const edit = h("button", { type: "button", class: "link", onclick: () =>
        this.actions.edit(index) }, "Describe it");
      note.replaceChildren(`${placeInWords(box)}. `, edit);
    }
  }

  makeNode() {
    const handles = [];
    for (const y of ["top", "middle", "bottom"]) {
      for (const x of ["left", "middle", "right"]) {
        if (x === "middle" && y === "middle") continue;
        handles.push(h("div", { class: "handle", "data-y": y, "data-x": x }));
      }
    }
    const node = h("div", { class: "box", tabindex: "0", role: "button" },
      h("div", { class: "fill" }), h("div", { class: "letters" }, h("span")),
      h("div", { class: "tag" }), handles);
    node.addEventListener("focus", () => this.doc.select(Number(node.dataset.index)));
    this.layer.append(node);
    return node;
  }

  showBox(node, element, i) {
    const box = boxOf(element);
    node.dataset.index = String(i);
    node.hidden = box === null;
    if (!box) return;
    const shown = inFrame(box);
    const isSelected = i === this.doc.selected;
    for (const side of ["top", "left"]) node.style[side] = `${shown[side] / 10}%`;
    node.style.width = `${(shown.right - shown.left) / 10}%`;
    node.style.height = `${(shown.bottom - shown.top) / 10}%`;
    // The smaller is above the larger: it could not be reached otherwise.
    const area = (shown.right - shown.left) * (shown.bottom - shown.top);
    node.style.zIndex = String(isSelected ? 2000 : 1000 - Math.round(area / 1001));
    node.classList.toggle("selected", isSelected);
    node.classList.toggle("wrong", this.findings.hasErrors(i));
    node.classList.toggle("at-top", shown.top < 40);
    node.classList.toggle("at-right", shown.left > 700);
    const title = titleOf(element) || "nothing yet";
    const name = `${kindName(element)} ${i + 1}, ${title}`;
    node.setAttribute("aria-label", `${name}, ${placeInWords(box)}`);
    node.setAttribute("aria-pressed", String(isSelected));
    const tag = node.querySelector(".tag");
    tag.replaceChildren(icon(isText(element) ? "text" : "object"), h("span", {}, title));
    this.showContent(node, element);
  }

  // What may be there, roughly, before there is a picture.
  showContent(node, element) {
    const colour = paletteOf(element).find(isColour);
    const letters = node.querySelector(".letters");
    const words = isText(element) ? textIn(element, "text") : "";
    letters.firstChild.textContent = words;
    letters.style.color = colour ?? "";
    fitLetters(letters, words);
    node.querySelector(".fill").style.background = isText(element) ? "none" : (colour ?? "");
  }

  paintPaper() {
    const colours = backgroundOf(this.doc.value).match(/#[0-9a-fA-F]{6}\b/g) ?? [];
    byId("paper").style.background =
      colours.length === 0 || this.doc.mode === "words" ? "" :
      colours.length === 1 ? colours[0] : `linear-gradient(${colours.slice(0, 2).join(", ")})`;
  }

  showGuides(guides) {
    byId("guides").replaceChildren(...guides.map(({ line, at }) => {
      const span = h("span", { class: line });
      span.style[line === "across" ? "top" : "left"] = `${at / 10}%`;
      return span;
    }));
  }

  // --- a pointer ---

  at(event) {
    const area = this.frame.getBoundingClientRect();
    return {
      x: ((event.clientX - area.left) / area.width) * kSide,
      y: ((event.clientY - area.top) / area.height) * kSide,
    };
  }

  begin(event) {
    if (event.button !== 0 || this.gesture || this.doc.mode === "words") return;
    if (this.frame.classList.contains("bare")) return;
    if (this.doc.fault) {
      this.doc.tell("refused");
      return;
    }
    const node = this.tool === "select" ? event.target.closest(".box") : null;
    const start = this.at(event);
    const pixels = { x: event.clientX, y: event.clientY };
    if (node) {
      const index = Number(node.dataset.index);
      const handle = event.target.closest(".handle");
      const sides = handle
        ? [handle.dataset.x, handle.dataset.y].filter((side) => side !== "middle")
        : kSides;
      const box = boxOf(elementsOf(this.doc.value)[index]);
      this.gesture = { index, sides, box, start, pixels, goes: false };
      this.doc.select(index);
      node.focus({ preventScroll: true });
    } else {
      const box = { top: start.y, left: start.x, bottom: start.y, right: start.x };
      const kind = this.tool === "text" ? "text" : "obj";
      this.gesture = { index: -1, kind, sides: ["bottom", "right"], box, start, pixels };
      this.gesture.goes = false;
    }
    event.preventDefault();
    this.frame.setPointerCapture(event.pointerId);
  }

  drag(event) {
    const gesture = this.gesture;
    if (!gesture) return;
    const { start, pixels, sides } = gesture;
    const far = Math.hypot(event.clientX - pixels.x, event.clientY - pixels.y);
    if (!gesture.goes && far < kLeastDrag) return;
    gesture.goes = true;
    const now = this.at(event);
    const isMove = sides.length === 4;
    let box = isMove ? moved(gesture.box, now.x - start.x, now.y - start.y) : { ...gesture.box };
    if (!isMove) {
      for (const side of sides) {
        box[side] += side === "left" || side === "right" ? now.x - start.x : now.y - start.y;
      }
    }
    let guides = [];
    if (!event.altKey) {
      const area = this.frame.getBoundingClientRect();
      const reach = [(kReach / area.width) * kSide, (kReach / area.height) * kSide];
      const others = elementsOf(this.doc.value)
        .filter((_, i) => i !== gesture.index).map(boxOf).filter(Boolean);
      ({ box, guides } = snapped(box, sides, others, reach));
    }
    this.showGuides(guides);
    gesture.now = isMove ? box : inFrame(box);
    if (gesture.index < 0) this.showDrawn(gesture.now);
    else this.place(gesture.index, gesture.now, `drag ${gesture.index}`);
  }

  showDrawn(box) {
    this.drawn ??= this.layer.appendChild(h("div", { class: "box drawn" }));
    const place = { top: box.top, left: box.left, width: box.right - box.left,
      height: box.bottom - box.top };
    for (const [key, value] of Object.entries(place)) this.drawn.style[key] = `${value / 10}%`;
  }

  end(isCancelled = false) {
    const gesture = this.gesture;
    this.gesture = null;
    this.showGuides([]);
    this.drawn?.remove();
    this.drawn = null;
    if (!gesture) return;
    this.doc.endEdit();
    if (gesture.index >= 0) return;
    const box = gesture.goes ? inFrame(gesture.now) : null;
    const isLarge = box && box.right - box.left >= kLeastBox && box.bottom - box.top >= kLeastBox;
    if (isLarge && !isCancelled) this.actions.add(gesture.kind, box);
    else this.doc.select(-1);
  }

  // To the box that took the place of one that is gone, or to the tools.
  focusNear(index) {
    const near = this.nodes[Math.min(index, this.nodes.length - 1)];
    (near ?? byId("stage-tools").querySelector("input:checked")).focus();
  }

  place(index, box, tag) {
    this.doc.change(tag, (root) => setBox(writableElements(root)[index], box));
  }

  // --- keys ---

  key(event) {
    const index = Number(event.target.dataset?.index ?? -1);
    const box = boxOf(elementsOf(this.doc.value)[index]);
    if (!box || event.ctrlKey || event.metaKey) return;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const way = ways[event.key];
    if (way) {
      const [right, down] = way.map((step) => step * (event.shiftKey ? 10 : 1));
      const next = event.altKey
        ? inFrame({ ...box, right: Math.max(box.left + 1, box.right + right),
          bottom: Math.max(box.top + 1, box.bottom + down) })
        : moved(box, right, down);
      this.place(index, next, `keys ${index}`);
      announce(placeInWords(next));
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.actions.remove(index);
    } else if (event.key === "Enter" || event.key === " ") {
      this.actions.edit(index);
    } else if (event.key === "Escape") {
      this.doc.select(-1);
      event.target.blur();
    } else {
      return;
    }
    event.preventDefault();
  }
}

export function addElement(doc, kind, box, palette) {
  const index = elementsOf(doc.value).length;
  const sides = [box.top, box.left, box.bottom, box.right];
  const element = newElement(kind, sides, palette);
  const isDone = doc.change("", (root) => writableElements(root).push(element));
  if (isDone) doc.select(index);
  return isDone;
}
