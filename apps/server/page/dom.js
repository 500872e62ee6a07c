// Making elements and icons.

// h("button", {class: "quiet", onclick: f, "aria-label": "Close"}, "text", child, ...)
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  const isThere = (child) => child !== null && child !== undefined;
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

const kIcons = {
  select: ["M5 3l14 7-6 2-2 6z"],
  object: ["M4 4h16v16H4z"],
  text: ["M5 7V5h14v2", "M12 5v14", "M9 19h6"],
  undo: ["M9 14L4 9l5-5", "M4 9h10a6 6 0 0 1 0 12h-3"],
  redo: ["M15 14l5-5-5-5", "M20 9H10a6 6 0 0 0 0 12h3"],
  import: ["M12 15V3", "M7 8l5-5 5 5", "M4 15v5h16v-5"],
  save: ["M12 3v12", "M7 10l5 5 5-5", "M4 15v5h16v-5"],
  new: ["M12 5v14", "M5 12h14"],
  help: ["M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
    "M9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.8.5-1.1 1-1.1 1.8", "M12 17v.01"],
  theme: ["M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z", "M12 3v18", "M12 7l6-2", "M12 12h9",
    "M12 17l6 2"],
  eye: ["M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12z", "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z"],
  copy: ["M9 9h11v11H9z", "M15 9V4H4v11h5"],
  trash: ["M4 7h16", "M9 7V4h6v3", "M6 7l1 13h10l1-13"],
  up: ["M6 14l6-6 6 6"],
  down: ["M6 10l6 6 6-6"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  dice: ["M5 5h14v14H5z", "M9 9v.01", "M15 9v.01", "M12 12v.01", "M9 15v.01", "M15 15v.01"],
  compare: ["M12 3v18", "M4 6h8", "M4 18h8", "M4 6v12", "M12 6h8v12h-8"],
  picture: ["M4 5h16v14H4z", "M4 16l5-5 4 4 3-3 4 4", "M15 9v.01"],
  describe: ["M5 6h14", "M5 12h14", "M5 18h9"],
  settings: ["M4 7h10", "M18 7h2", "M16 5v4", "M4 17h2", "M10 17h10", "M8 15v4"],
  code: ["M9 7l-5 5 5 5", "M15 7l5 5-5 5"],
  gallery: ["M4 4h7v7H4z", "M13 4h7v7h-7z", "M4 13h7v7H4z", "M13 13h7v7h-7z"],
  warning: ["M12 4l9 16H3z", "M12 10v4", "M12 17v.01"],
  check: ["M5 12l5 5 9-10"],
  edit: ["M4 20l1-5L16 4l4 4L9 19z"],
};
const kSvg = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(kSvg, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  for (const line of kIcons[name]) {
    const path = document.createElementNS(kSvg, "path");
    path.setAttribute("d", line);
    svg.append(path);
  }
  return svg;
}

// A button with an icon alone.
export function iconButton(name, label, onclick, more = {}) {
  const properties = { type: "button", class: "icon-button", ...more, onclick };
  const button = h("button", properties, icon(name));
  button.setAttribute("aria-label", label);
  button.title = label;
  return button;
}

export const byId = (id) => document.getElementById(id);

// Writes what differs alone, so that the caret of whoever types stays.
export function show(field, value) {
  if (field.value !== value) field.value = value;
}

// The server's errors are parts of sentences, as programs write them into theirs.
export function sentence(text) {
  if (text === "") return "";
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;
}

export function saveFile(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Tells those who listen instead of looking.
export function announce(sentence) {
  byId("announcer").textContent = sentence;
}

let toastTimer = 0;

// A sentence at the foot of the page for a while; what is wrong stays longer.
export function toast(sentence, kind = "note") {
  const place = byId("toast");
  clearTimeout(toastTimer);
  place.textContent = sentence;
  place.className = `toast ${kind}`;
  place.hidden = false;
  toastTimer = setTimeout(() => (place.hidden = true), kind === "error" ? 9000 : 4000);
}
