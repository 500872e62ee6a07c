// The page: makes its parts and ties them together.
import * as api from "./api.js";
import { addElement, Canvas } from "./boxes.js";
import { elementsOf, kindName, moveElement, removeElement, repeatElement } from "./caption.js";
import { askForKey, helpDialog } from "./dialogs.js";
import { CaptionDocument } from "./document.js";
import { announce, byId, h, icon, iconButton, saveFile, sentence, show, toast } from "./dom.js";
import { showNotes } from "./fields.js";
import { Findings } from "./findings.js";
import { Gallery, subjectOf } from "./gallery.js";
import { Guide } from "./guide.js";
import { listen, readFile } from "./importing.js";
import { Jobs } from "./jobs.js";
import { jsonText, parseJson } from "./json_text.js";
import { JsonPane } from "./json_pane.js";
import { obstacleIn } from "./obstacles.js";
import { Panel } from "./panel.js";
import { RenderBar } from "./render_bar.js";
import { remarkOf } from "./report.js";
import { Settings, sidesOf } from "./settings.js";
import { listenToKeys } from "./shortcuts.js";
import { Stage, toolbar } from "./stage.js";
import { startDialog } from "./start.js";
import { recall, remember } from "./store.js";
import { toggleTheme, Views } from "./views.js";

const kAgainMs = 2000; // until the model is asked for again while it loads

const doc = new CaptionDocument();
const draft = recall("draft");
if (draft) doc.replace(draft);
doc.past = [];

api.onKeyWanted(askForKey);
const guide = new Guide();
const settings = new Settings();
const findings = new Findings(doc, () => settings.model !== null);
const views = new Views();
const jobs = new Jobs();

// --- what can be done with a thing ---

const actions = {
  add(kind, box) {
    if (!addElement(doc, kind, box, kind === "text" ? guide.letterColours : [])) return;
    stage.setTool("select");
    actions.edit(doc.selected);
  },
  edit(index) {
    views.reach("describe");
    panel.enter(index);
  },
  remove(index) {
    const name = kindName(elementsOf(doc.value)[index]);
    const isOnBox = byId("boxes").contains(document.activeElement);
    if (!doc.change("", (root) => removeElement(root, index))) return;
    doc.select(-1);
    (isOnBox ? canvas : panel).focusNear(index);
    announce(`${name} ${index + 1} removed. Ctrl+Z brings it back.`);
  },
  copy(index) {
    if (!doc.change("", (root) => repeatElement(root, index))) return;
    doc.select(index + 1);
    panel.focusTool(index + 1, "copy");
  },
  shift(index, by) {
    const to = index + by;
    const count = elementsOf(doc.value).length;
    if (to < 0 || to >= count) return;
    if (!doc.change("", (root) => moveElement(root, index, to))) return;
    doc.select(to);
    panel.focusTool(to, by < 0 ? "up" : "down");
    announce(`Now ${to + 1} of ${count}.`);
  },
};

const canvas = new Canvas(doc, findings, actions);
const stage = new Stage(canvas, doc);
const panel = new Panel(doc, findings, guide, actions);
const pane = new JsonPane(doc, findings);
const bar = new RenderBar(jobs, render);

// A box in the middle, a little aside of the last, for who does not draw.
function addInMiddle(kind) {
  const by = (elementsOf(doc.value).length % 5) * 40;
  actions.add(kind, { top: 300 + by, left: 300 + by, bottom: 600 + by, right: 600 + by });
}

byId("add-buttons").append(
  h("button", { type: "button", class: "quiet small", onclick: () => addInMiddle("obj") },
    icon("new"), "Object"),
  h("button", { type: "button", class: "quiet small", onclick: () => addInMiddle("text") },
    icon("new"), "Text"),
);

// --- plain words ---

for (const input of document.getElementsByName("mode")) {
  input.addEventListener("change", () => doc.setMode(input.value));
}
byId("prompt").addEventListener("input", (event) => doc.setPrompt(event.target.value));
let lastReading = null; // the caption that the server made of the last words
let refusal = { prompt: null, rule: "" }; // the words that it could not read, and why

function refusedWords() {
  return doc.prompt === refusal.prompt ? [{ ...refusal, severity: "error" }] : [];
}

byId("to-boxes").addEventListener("click", () => {
  doc.replace({ text: inLines(lastReading), mode: "boxes" });
  panel.focusNear(0);
});

function inLines(text) {
  try {
    return jsonText(parseJson(text).value);
  } catch {
    return text;
  }
}

function showMode() {
  const isWords = doc.mode === "words";
  for (const input of document.getElementsByName("mode")) input.checked = input.value === doc.mode;
  byId("words-form").hidden = !isWords;
  byId("boxes-form").hidden = isWords;
  byId("to-boxes").hidden = lastReading === null;
  show(byId("prompt"), doc.prompt);
  byId("prompt").placeholder = guide.example;
  showNotes(byId("prompt-notes"), byId("prompt"), refusedWords(), guide.aboutWords);
  byId("broken").hidden = doc.fault === null;
  byId("broken").textContent = "The JSON cannot be read now, so the boxes wait: see the JSON view.";
}

doc.addEventListener("change", () => {
  remember("draft", { text: doc.text, mode: doc.mode, prompt: doc.prompt });
  bar.note("");
  showMode();
  showTools();
});
doc.addEventListener("refused", () =>
  toast("Mend the JSON first, or undo: it cannot be read now.", "error"));

// --- the bar ---

function openFile() {
  byId("file").click();
}

byId("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (!file) return;
  try {
    take(await readFile(file));
  } catch (error) {
    toast(error.message, "error");
  }
});

// What was opened, dropped or pasted.
function take({ text, prompt, request, blob, name }) {
  if (text !== undefined) doc.replace({ text, mode: "boxes" });
  else doc.replace({ prompt, mode: "words" });
  stage.showPicture(null);
  if (request) settings.load(request);
  if (blob) {
    const [width, height] = sidesOf(request?.size ?? "1x1");
    stage.showPicture({ blob, width, height }, `The picture of ${name}`);
  }
  toast(`${name} is in the editor.`);
}

listen(take, (why) => toast(why, "error"));

function openStart() {
  startDialog(guide, {
    take(template) {
      doc.replace({ text: template.text, mode: "boxes" });
      if (template.shape) settings.setShape(template.shape);
      stage.showPicture(null);
      bar.note("Change what you like, then render.");
    },
    words() {
      doc.setMode("words");
      views.reach("describe");
      byId("prompt").focus();
    },
    openFile,
  });
  remember("started", true);
}

function saveCaption() {
  if (doc.mode === "words") saveFile("prompt.txt", new Blob([doc.prompt], { type: "text/plain" }));
  else saveFile("caption.json", new Blob([doc.text], { type: "application/json" }));
}

const [[newButton], [undoButton, redoButton]] = toolbar([
  [["new", "New, from a template", openStart, { disabled: true }],
    ["import", "Open a caption or a picture", openFile], ["save", "Save the caption", saveCaption]],
  [["undo", "Undo", () => doc.undo()], ["redo", "Redo", () => doc.redo()]],
  [["theme", "Light or dark", toggleTheme, { class: "icon-button hide-small" }],
    ["help", "How it works", helpDialog]],
]);

function showTools() {
  undoButton.disabled = doc.past.length === 0;
  redoButton.disabled = doc.future.length === 0;
}

byId("json-tools").append(
  iconButton("copy", "Copy the JSON", async () => {
    try {
      await navigator.clipboard.writeText(doc.text);
      toast("Copied.");
    } catch {
      byId("code-text").select();
      toast("Press Ctrl+C to copy.");
    }
  }),
);

// --- pictures ---

const gallery = new Gallery({
  show(picture) {
    stage.showPicture(picture, picture ? subjectOf(picture) : "");
  },
  load(picture) {
    const text = picture.text ?? inLines(picture.request?.json_prompt ?? "{}");
    const mode = picture.mode ?? "boxes";
    doc.replace({ text, mode, prompt: picture.prompt ?? "" });
    settings.load({ ...picture.request, seed: picture.seed });
    if (mode === "words") lastReading = picture.request?.json_prompt ?? null;
    showMode();
    stage.showPicture(picture, subjectOf(picture));
    views.reach("picture");
    toast("Its caption, settings and seed are in the editor.");
  },
  useSeed(picture) {
    settings.set("seed", picture.seed);
    toast(`Seed ${picture.seed} is kept from now on.`);
  },
});
stage.onShown = (picture) => {
  gallery.mark(picture?.id ?? "");
  remember("shown", picture?.id ?? null);
  if (!picture) canvas.setRatio(...settings.size);
};
let shownSize = "";
settings.addEventListener("change", () => {
  const { size } = settings.values;
  if (shownSize !== "" && shownSize !== size && !jobs.isBusy) stage.showPicture(null);
  else if (shownSize === "" && !stage.url) canvas.setRatio(...settings.size);
  shownSize = size;
});

// The picture of before, in place of one that did not come to be.
function showFormer() {
  const former = gallery.pictures.find(({ id }) => id === recall("shown"));
  stage.showPicture(former ?? null, former ? subjectOf(former) : "");
}

jobs.addEventListener("preview", ({ detail }) => stage.showPreview(detail));
jobs.addEventListener("picture", ({ detail }) => {
  stage.showPicture(detail, subjectOf(detail));
  gallery.update();
});
jobs.addEventListener("gone", () => {
  showFormer();
  bar.note("The picture that was being painted is gone: the server no longer knows it. " +
    "Render again.");
});
jobs.addEventListener("error", ({ detail: { error, kept } }) => {
  if (jobs.isBusy) {
    toast(error.message, "error"); // the progress stands where the note would
    return;
  }
  showFormer();
  fail(error, kept);
});
jobs.addEventListener("end", ({ detail: { job, kept } }) => {
  gallery.update();
  if (job.state === "completed") {
    if (kept.mode === "words") lastReading = job.request.json_prompt;
    showMode();
    const remarks = job.warnings.map(remarkOf).join(" ");
    bar.note(remarks);
    announce(`The picture is finished. ${remarks}`);
    return;
  }
  if (job.pictures.length === 0) showFormer();
  const reason = job.error?.message ?? "the server gave no reason";
  if (job.state === "failed") fail({ message: sentence(reason) }, kept);
  else bar.note("Cancelled.");
});

// `kept` is what was in the editor when it was asked for.
function fail(error, { mode, prompt }) {
  const again = error.retryAfter > 0 ? ` Try again in ${error.retryAfter} s.` : "";
  const isRefused = error.param === "prompt" && mode === "words";
  if (isRefused) refusal = { prompt, rule: error.message };
  showMode();
  if (!isRefused || doc.mode !== mode || doc.prompt !== prompt) {
    bar.note(error.message + again, "error");
    return;
  }
  bar.note("These words cannot be painted; the reason stands below them.", "error");
  views.reach("describe");
  byId("prompt").focus();
}

let isStarting = false; // one job, however often the button is pressed

async function render() {
  if (jobs.isBusy || isStarting) return;
  isStarting = true;
  try {
    await renderNow();
  } finally {
    isStarting = false;
  }
}

async function renderNow() {
  if (!settings.model) await meet(); // a key may have been asked for, and not given
  if (!settings.model) {
    bar.note("The model is not loaded yet.", "error");
    return;
  }
  if (jobs.isBusy) return; // the one of before
  const request = settings.request();
  const { text, mode, prompt, value } = doc;
  if (mode === "words") {
    if (prompt.trim() === "") {
      bar.note("Write what should be on the picture first.", "error");
      byId("prompt").focus();
      return;
    }
    request.prompt = prompt;
  } else {
    const found = await findings.ofText(text);
    const obstacle = obstacleIn(value, found.list);
    if (obstacle) {
      bar.note(obstacle.sentence, "error");
      if (obstacle.element !== undefined) actions.edit(obstacle.element);
      return;
    }
    request.json_prompt = found.valid ? text : found.canonical;
  }
  bar.note("");
  views.reach("picture");
  canvas.setRatio(...sidesOf(request.size));
  await jobs.start(request, { text, mode, prompt });
}

listenToKeys({ doc, stage, render });

// --- the server ---

let meetingAgain = 0;

async function meet() {
  clearTimeout(meetingAgain);
  try {
    const { data } = await api.models();
    const model = data[0];
    guide.take(model.octet);
    settings.take(model.octet);
    const devices = (model.octet.devices ?? []).filter((name) => name !== "auto").join(", ");
    byId("model-name").textContent = devices ? `${model.id} \u00b7 ${devices}` : model.id;
    panel.update();
    findings.schedule();
    showMode();
    newButton.disabled = false; // the templates are those of the model
    if (!draft && !recall("started")) openStart();
    jobs.resume();
  } catch (error) {
    byId("model-name").textContent =
      error.status === 503 ? "The model is being loaded\u2026" : error.message;
    if (![400, 401, 403, 404].includes(error.status)) meetingAgain = setTimeout(meet, kAgainMs);
  }
}

canvas.update();
panel.update();
pane.update();
showMode();
showTools();
await gallery.update();
showFormer();
await meet();
