// Windows over the page.
import { h, iconButton } from "./dom.js";

let count = 0;

// Opens one; content(close) gives what is in it. It goes when it is closed.
export function dialog({ title, class: kind = "", onclose = () => {} }, content) {
  const id = `dialog-${++count}`;
  const view = h("dialog", { class: `dialog ${kind}`, "aria-labelledby": id });
  const close = () => view.close();
  view.append(
    h("div", { class: "dialog-head" }, h("h2", { id }, title),
      iconButton("close", "Close", close)),
    h("div", { class: "dialog-body" }, content(close)),
  );
  view.addEventListener("click", (event) => {
    if (event.target === view) close(); // beside it
  });
  view.addEventListener("close", () => {
    view.remove();
    onclose();
  });
  document.body.append(view);
  view.showModal();
  return view;
}

// Resolves to the key that was typed, or null.
export function askForKey(wasWrong) {
  return new Promise((done) => {
    let key = null;
    const input = h("input", { type: "password", id: "server-key", autocomplete: "off",
      required: true });
    const view = dialog({ title: "This server wants a key", onclose: () => done(key) }, (close) => [
      h("form", { class: "stack", method: "dialog", onsubmit: (event) => {
        event.preventDefault();
        key = input.value.trim() || null;
        close();
      } },
      h("p", {}, wasWrong ? "That key was not accepted. Ask whoever runs the server for another."
        : "Whoever runs the server has one. It is kept until this tab is closed."),
      h("div", { class: "field" }, h("label", { for: "server-key" }, "Key"), input),
      h("div", { class: "row end" }, h("button", { type: "submit", class: "primary" }, "Use key"))),
    ]);
    view.querySelector("input").focus();
  });
}

const kKeys = [
  ["Arrow keys", "move the selected box; with Shift by 10"],
  ["Alt + arrow keys", "make it larger or smaller"],
  ["Enter", "go from a box to its description"],
  ["Delete", "remove it"],
  ["Escape", "select nothing"],
  ["V, O, T", "select, draw an object, draw a text"],
  ["H", "hide the boxes, show them"],
  ["Ctrl + Enter", "render"],
  ["Ctrl + Z, Ctrl + Shift + Z", "undo, redo"],
  ["Alt while dragging", "no snapping to other boxes"],
];

export function helpDialog() {
  dialog({ title: "How it works" }, () => [
    h("ol", { class: "steps" },
      h("li", {}, "Draw a box for each thing: drag on the picture."),
      h("li", {}, "Say what is in each box: a description, or the letters to paint."),
      h("li", {}, "Render. Move a box, change a word, render again.")),
    h("h3", {}, "Keys"),
    h("dl", { class: "rows keys-list" }, kKeys.map(([keys, what]) =>
      [h("dt", {}, keys), h("dd", {}, what)])),
    h("p", { class: "hint" }, "Drop a caption or a picture that Octet made anywhere on this page " +
      "to go on from there. Pictures and drafts stay in this browser."),
  ]);
}
