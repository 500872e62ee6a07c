// The pictures that were made, newest first; one of them looked at closely.
import { compareDialog } from "./compare.js";
import { dialog } from "./dialogs.js";
import { announce, byId, h, icon, saveFile } from "./dom.js";
import { elementsOf, summaryOf, titleOf } from "./caption.js";
import { parseJson } from "./json_text.js";
import { remarkOf, reportRows } from "./report.js";
import { allPictures, dropPicture } from "./store.js";

const kMostSubject = 60; // letters; the summary is shorter than a longer list of things

// In words, for lists and for those who do not see it.
export function subjectOf(picture) {
  if (picture.mode === "words" && picture.prompt) return picture.prompt;
  try {
    const { value } = parseJson(picture.text ?? picture.request?.json_prompt ?? "");
    const things = elementsOf(value).map(titleOf).filter(Boolean).join(", ");
    const summary = summaryOf(value).trim().replace(/\.$/, "");
    return (things.length <= kMostSubject && things) || summary || things || "A picture";
  } catch {
    return "A picture";
  }
}

const kLooks = {
  constant: "The picture is of one colour: something went wrong.",
  refusal: "The model painted its refusal: try other words, or another seed.",
};

export class Gallery {
  // actions: {show(picture), load(picture), useSeed(picture)}
  constructor(actions) {
    this.actions = actions;
    this.pictures = [];
    this.urls = new Map();
    this.picked = null; // a Set while two are picked to compare
    this.shown = "";
    this.compareButton = h("button", { type: "button", class: "quiet small",
      onclick: () => this.pick(this.picked ? null : new Set()) }, icon("compare"), "Compare two");
    byId("gallery-tools").append(this.compareButton);
  }

  urlOf(picture) {
    if (!this.urls.has(picture.id)) {
      this.urls.set(picture.id, URL.createObjectURL(picture.blob));
    }
    return this.urls.get(picture.id);
  }

  async update() {
    this.pictures = await allPictures();
    const ids = new Set(this.pictures.map(({ id }) => id));
    for (const id of this.picked ?? []) if (!ids.has(id)) this.picked.delete(id);
    this.render();
    this.release(ids);
  }

  // A picture that is gone must not stay in the browser's memory by its URL; where a window shows
  // it, the URL waits for the next time.
  release(ids) {
    const seen = new Set([...document.images].map(({ src }) => src));
    for (const [id, url] of this.urls) {
      if (ids.has(id) || seen.has(url)) continue;
      URL.revokeObjectURL(url);
      this.urls.delete(id);
    }
  }

  // The picture that is on the canvas.
  mark(id) {
    this.shown = id;
    this.render();
  }

  pick(picked) {
    this.picked = picked;
    this.render();
    if (picked) announce(byId("gallery-hint").textContent);
  }

  render() {
    const { pictures, picked } = this;
    this.compareButton.hidden = pictures.length < 2;
    this.compareButton.setAttribute("aria-pressed", String(picked !== null));
    byId("gallery-hint").textContent =
      pictures.length === 0 ? "Your pictures appear here. They stay in this browser." :
      picked ? `Choose two pictures: ${picked.size} of 2 chosen.` : "";
    const focused = document.activeElement?.closest(".thumb")?.dataset.id;
    byId("thumbs").replaceChildren(...pictures.map((picture) => this.thumb(picture)));
    if (focused) {
      [...byId("thumbs").querySelectorAll(".thumb")].find((b) => b.dataset.id === focused)?.focus();
    }
  }

  thumb(picture) {
    const isPicked = this.picked?.has(picture.id) ?? false;
    const classes = `thumb ${isPicked ? "picked" : ""} ${picture.id === this.shown ? "shown" : ""}`;
    const name = `${subjectOf(picture)}, seed ${picture.seed}`;
    const image = h("img", { src: this.urlOf(picture), alt: "", loading: "lazy" });
    image.style.aspectRatio = `${picture.width} / ${picture.height}`;
    const button = h("button", { type: "button", class: classes, title: name, "aria-label": name,
      "data-id": picture.id, onclick: () => this.choose(picture) }, image);
    if (this.picked) button.setAttribute("aria-pressed", String(isPicked));
    return h("li", {}, button);
  }

  choose(picture) {
    const { picked } = this;
    if (!picked) {
      this.open(picture);
      return;
    }
    if (!picked.delete(picture.id)) picked.add(picture.id);
    if (picked.size < 2) {
      this.pick(picked);
      return;
    }
    const two = [...picked].map((id) => this.pictures.find((each) => each.id === id));
    this.pick(null);
    compareDialog(two.map((each) =>
      ({ ...each, url: this.urlOf(each), subject: subjectOf(each) })));
  }

  open(picture) {
    const { actions } = this;
    this.actions.show(picture);
    const rows = reportRows(picture).map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]);
    const remarks = [kLooks[picture.look] ?? [], (picture.warnings ?? []).map(remarkOf)].flat();
    const button = (name, label, onclick, classes = "quiet") =>
      h("button", { type: "button", class: classes, onclick }, icon(name), label);
    const view = dialog({ title: subjectOf(picture), class: "picture-dialog" }, (close) => [
      h("figure", {}, h("img", { src: this.urlOf(picture), alt: subjectOf(picture) })),
      h("div", { class: "stack facts" },
        remarks.length > 0
          ? h("div", { class: "notice" }, remarks.map((text) => h("p", {}, text))) : null,
        h("div", { class: "choices" },
          button("edit", "Load into editor", () => { close(); actions.load(picture); }, "primary"),
          button("save", "Download", () => this.download(picture)),
          button("dice", "Use its seed", () => { close(); actions.useSeed(picture); }),
          button("compare", "Compare\u2026", () => { close(); this.pick(new Set([picture.id])); }),
          button("trash", "Delete", async () => { close(); await this.drop(picture); },
            "quiet danger")),
        h("dl", { class: "rows" }, rows),
        h("details", {}, h("summary", {}, "Caption"),
          h("pre", { class: "caption" }, picture.request?.json_prompt ?? picture.text ?? ""))),
    ]);
    return view;
  }

  download(picture) {
    const words = subjectOf(picture).toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 40);
    saveFile(`${words.replace(/^-|-$/g, "") || "picture"}-${picture.seed}.` +
      `${picture.format === "jpeg" ? "jpg" : picture.format}`, picture.blob);
  }

  async drop(picture) {
    const index = this.pictures.findIndex(({ id }) => id === picture.id);
    await dropPicture(picture.id);
    if (this.shown === picture.id) this.actions.show(null);
    await this.update();
    // To the picture that took its place, or to where the next is made.
    const thumbs = byId("thumbs").querySelectorAll(".thumb");
    (thumbs[Math.min(index, thumbs.length - 1)] ?? byId("render")).focus();
  }
}

