// What a caption consists of, as the forms and the picture show it. Edits touch only what they
// name: unknown keys, the order of keys and every other number stay.
import { copyOf, Numeral } from "./json_text.js";

export const kSide = 1000; // places are in thousandths of the height and of the width
export const kMostElementColours = 5;
export const kMostStyleColours = 16;

const kRootKeys = ["high_level_description", "style_description", "compositional_deconstruction"];
const kPartKeys = ["background", "elements"];
const kElementKeys = ["type", "bbox", "text", "desc", "color_palette"];
const kPhotoKeys = ["aesthetics", "lighting", "photo", "medium", "color_palette"];
const kArtKeys = ["aesthetics", "lighting", "medium", "art_style", "color_palette"];
export const kPart = "compositional_deconstruction";
export const kStyle = "style_description";

// Sets a member where it is, or else where the model expects it; undefined removes it.
function setMember(object, key, value, order) {
  if (value === undefined) {
    object.delete(key);
    return;
  }
  if (object.has(key)) {
    object.set(key, value);
    return;
  }
  const before = new Set(order.slice(0, order.indexOf(key)));
  const members = [...object];
  let at = 0;
  members.forEach(([each], i) => {
    if (before.has(each)) at = i + 1;
  });
  members.splice(at, 0, [key, value]);
  object.clear();
  for (const [each, member] of members) object.set(each, member);
}

function objectIn(owner, key, order) {
  if (!(owner.get(key) instanceof Map)) setMember(owner, key, new Map(), order);
  return owner.get(key);
}

export function textIn(object, key) {
  const value = object instanceof Map ? object.get(key) : undefined;
  if (value instanceof Numeral) return value.source;
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

// --- the whole ---

export function emptyCaption() {
  const part = new Map([["background", ""], ["elements", []]]);
  return new Map([["high_level_description", ""], [kPart, part]]);
}

export function summaryOf(root) {
  return textIn(root, "high_level_description");
}

export function setSummary(root, text) {
  setMember(root, "high_level_description", text, kRootKeys);
}

function partOf(root) {
  const part = root instanceof Map ? root.get(kPart) : undefined;
  return part instanceof Map ? part : new Map();
}

export function backgroundOf(root) {
  return textIn(partOf(root), "background");
}

function writablePart(root) {
  return objectIn(root, kPart, kRootKeys);
}

export function setBackground(root, text) {
  setMember(writablePart(root), "background", text, kPartKeys);
}

// --- style ---

export function styleOf(root) {
  const style = root instanceof Map ? root.get(kStyle) : undefined;
  return style instanceof Map ? style : null;
}

// "photo", "art", or "" where the caption leaves it open.
export function styleKind(root) {
  const style = styleOf(root);
  if (!style) return "";
  return style.has("photo") ? "photo" : "art";
}

export function setStyleKind(root, kind) {
  if (kind === "") {
    root.delete(kStyle);
    return;
  }
  const style = objectIn(root, kStyle, kRootKeys);
  const [key, other] = kind === "photo" ? ["photo", "art_style"] : ["art_style", "photo"];
  const order = kind === "photo" ? kPhotoKeys : kArtKeys;
  const was = style.get(other);
  style.delete(other);
  for (const each of ["aesthetics", "lighting", "medium"]) {
    if (!style.has(each)) setMember(style, each, "", order);
  }
  if (!style.has(key)) setMember(style, key, was ?? "", order);
  // The two kinds have their keys in different orders.
  const medium = style.get("medium");
  style.delete("medium");
  setMember(style, "medium", medium || (kind === "photo" ? "photograph" : ""), order);
  sortKeys(style, order);
}

function sortKeys(object, order) {
  const known = order.filter((key) => object.has(key)).map((key) => [key, object.get(key)]);
  const others = [...object].filter(([key]) => !order.includes(key));
  object.clear();
  for (const [key, value] of [...known, ...others]) object.set(key, value);
}

export function setStyle(root, key, value) {
  const order = styleKind(root) === "photo" ? kPhotoKeys : kArtKeys;
  setMember(objectIn(root, kStyle, kRootKeys), key, value, order);
}

// --- elements ---

export function elementsOf(root) {
  const elements = partOf(root).get("elements");
  return Array.isArray(elements) ? elements : [];
}

export function writableElements(root) {
  const part = writablePart(root);
  if (!Array.isArray(part.get("elements"))) setMember(part, "elements", [], kPartKeys);
  return part.get("elements");
}

export function removeElement(root, index) {
  writableElements(root).splice(index, 1);
}

export function repeatElement(root, index) {
  const elements = writableElements(root);
  elements.splice(index + 1, 0, copyOf(elements[index]));
}

export function moveElement(root, index, to) {
  const elements = writableElements(root);
  elements.splice(to, 0, ...elements.splice(index, 1));
}

export function isText(element) {
  return element instanceof Map && element.get("type") === "text";
}

export function setElement(element, key, value) {
  setMember(element, key, value, kElementKeys);
}

export function setKind(element, kind) {
  setElement(element, "type", kind);
  if (kind === "text") {
    if (!element.has("text")) setElement(element, "text", "");
  } else {
    element.delete("text"); // an error there
  }
}

export function newElement(kind, box, palette = []) {
  const element = new Map([["type", kind], ["bbox", box]]);
  if (kind === "text") element.set("text", "");
  element.set("desc", kind === "text" ? "Bold sans-serif letters" : "");
  if (palette.length > 0) element.set("color_palette", palette);
  return element;
}

// What a list calls it; empty while nothing says what to paint.
export function titleOf(element) {
  if (!isText(element)) return textIn(element, "desc").trim();
  const words = textIn(element, "text").replace(/\s+/g, " ").trim();
  return words && `\u201c${words}\u201d`;
}

export function isEmpty(root) {
  return elementsOf(root).length === 0 && !backgroundOf(root).trim() && !summaryOf(root).trim();
}

export function kindName(element) {
  return isText(element) ? "Text" : "Object";
}

// {top, left, bottom, right}, or null where there is no box of four numbers.
export function boxOf(element) {
  const box = element instanceof Map ? element.get("bbox") : undefined;
  if (!Array.isArray(box) || box.length !== 4) return null;
  const [top, left, bottom, right] = box.map((side) =>
    typeof side === "number" || side instanceof Numeral ? Number(side) : NaN,
  );
  if (![top, left, bottom, right].every(Number.isFinite)) return null;
  return { top, left, bottom, right };
}

export function setBox(element, { top, left, bottom, right }) {
  const was = element.get("bbox");
  const kept = boxOf(element);
  const old = kept ? [kept.top, kept.left, kept.bottom, kept.right] : [];
  const sides = [top, left, bottom, right];
  // A side that did not move keeps its spelling.
  setElement(element, "bbox", sides.map((s, i) => (old[i] === s ? was[i] : Math.round(s))));
}

export function paletteOf(owner) {
  const palette = owner instanceof Map ? owner.get("color_palette") : undefined;
  return Array.isArray(palette) ? palette : [];
}

export function isColour(value) {
  return typeof value === "string" && /^#[0-9a-fA-F]{6}$/.test(value);
}

// What a path of the check names: {element, field, index}, {field}, or {style}.
export function fieldOfPath(path) {
  const element = /^\$\.compositional_deconstruction\.elements\[(\d+)\](?:\.(\w+))?/.exec(path);
  if (element) return { element: Number(element[1]), field: element[2] ?? "" };
  const style = /^\$\.style_description(?:\.(\w+))?/.exec(path);
  if (style) return { style: style[1] ?? "" };
  if (path.startsWith("$.high_level_description")) return { field: "summary" };
  if (path.startsWith(`$.${kPart}.background`)) return { field: "background" };
  return { field: "" };
}
