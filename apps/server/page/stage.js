// What is under the boxes: nothing, a rough picture while one is being made, or a finished one; and
// the tools above it.
import { byId, h, icon, iconButton } from "./dom.js";
import { choice } from "./fields.js";

export class Stage {
  constructor(canvas, doc) {
    this.canvas = canvas;
    this.doc = doc;
    this.frame = byId("frame");
    this.image = byId("picture");
    this.url = "";
    this.tools = choice({ label: "Tool", name: "tool", onchange: (tool) => this.setTool(tool),
      options: [
        { value: "select", text: "Select", image: "select", says: "Select and move boxes" },
        { value: "obj", text: "Object", image: "object", says: "Draw a box for an object" },
        { value: "text", text: "Text", image: "text", says: "Draw a box for letters" },
      ] });
    this.eye = h("button", { type: "button", class: "quiet small push", title: "Show the boxes",
      onclick: () => this.showBoxes(!this.hasBoxes) }, icon("eye"),
      h("span", { class: "hide-small" }, "Boxes"));
    this.eye.setAttribute("aria-label", "Show the boxes");
    this.clear = h("button", { type: "button", class: "quiet small", title: "Take the picture away",
      onclick: () => this.takeAway() }, icon("close"),
      h("span", { class: "hide-small" }, "Clear"));
    this.clear.setAttribute("aria-label", "Take the picture away");
    byId("stage-tools").append(this.tools.node, this.eye, this.clear);
    this.setTool("select");
    this.showBoxes(true);
    doc.addEventListener("change", () => this.update());
    this.update();
  }

  setTool(tool) {
    this.tool = tool;
    this.tools.show(tool);
    this.canvas.setTool(tool);
    if (tool !== "select") this.showBoxes(true);
  }

  get hasBoxes() {
    return !this.frame.classList.contains("bare");
  }

  showBoxes(isShown) {
    this.frame.classList.toggle("bare", !isShown);
    this.eye.setAttribute("aria-pressed", String(isShown));
  }

  update() {
    const isWords = this.doc.mode === "words";
    this.tools.node.hidden = isWords;
    this.eye.hidden = isWords;
    this.clear.hidden = this.url === "";
  }

  showBlob(blob, description, isRough) {
    const before = this.url;
    this.url = blob ? URL.createObjectURL(blob) : "";
    this.image.hidden = !blob;
    this.image.alt = description;
    this.image.classList.toggle("rough", isRough);
    this.frame.classList.toggle("painted", blob !== null);
    if (blob) this.image.src = this.url;
    else this.image.removeAttribute("src");
    if (before) URL.revokeObjectURL(before);
    this.update();
    this.canvas.update();
  }

  showPreview({ blob, width, height }) {
    this.canvas.setRatio(width, height);
    this.showBlob(blob, "A rough picture of what is being painted", true);
  }

  // As the gallery keeps it; null for none.
  showPicture(picture, description = "") {
    if (picture) this.canvas.setRatio(picture.width, picture.height);
    this.showBlob(picture?.blob ?? null, description, false);
    this.onShown?.(picture);
  }

  // By the button that is gone with the picture.
  takeAway() {
    this.showPicture(null);
    [this.eye, byId("render"), byId("cancel")].find((each) => !each.hidden).focus();
  }
}

// Makes room for the tools of the caption above the page.
export function toolbar(groups) {
  const nodes = groups.map((group) => group.map(([name, label, action, more = {}]) =>
    iconButton(name, label, action, more)));
  nodes.forEach((group, i) => {
    if (i > 0) byId("bar-tools").append(h("span", { class: "gap" }));
    byId("bar-tools").append(...group);
  });
  return nodes;
}
