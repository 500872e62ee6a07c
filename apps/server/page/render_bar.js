// The button that renders, and what is said while it does: stage, time left, place in the queue.
import { announce, byId } from "./dom.js";
import { seconds } from "./report.js";

const kAnnounceMs = 5000; // for those who listen: not every step
const kSettleMs = 500; // Cancel takes the place of Render: longer than a second click takes

function left(eta) {
  return Number.isFinite(eta) && eta >= 0.5 ? `, about ${seconds(eta)} left` : "";
}

// What happens now, in words.
export function progressWords(view) {
  if (view.isLost) return "The connection was lost. Looking for the server again\u2026";
  if (view.cancelling) return "Cancelling\u2026";
  if (view.state === "sending") return "Asking\u2026";
  if (view.state === "finding") return "Looking for the picture of before\u2026";
  if (view.state === "queued") {
    const ahead = (view.position ?? 1) - 1;
    const place = ahead <= 0 ? "Next in the queue" :
      `${ahead} ${ahead === 1 ? "picture is" : "pictures are"} before yours`;
    return place + left(view.eta);
  }
  const stages = {
    text: "Reading the caption",
    load: "Loading the model",
    denoise: `Painting, step ${view.done} of ${view.total}`,
    decode: "Finishing the picture",
  };
  return (stages[view.stage] ?? "Starting") + left(view.eta);
}

// Of the painting, which is nearly all of the time.
function percentOf(view) {
  if (view?.stage === "decode") return 100;
  if (view?.stage !== "denoise" || !view.total) return 0;
  return Math.round((100 * view.done) / view.total);
}

export class RenderBar {
  constructor(jobs, render) {
    this.jobs = jobs;
    this.said = "";
    this.saidAt = 0;
    this.startedAt = -kSettleMs;
    const cancel = () => {
      if (performance.now() - this.startedAt >= kSettleMs) jobs.cancel();
    };
    this.listen(byId("render"), render);
    this.listen(byId("cancel"), cancel);
    jobs.addEventListener("change", () => this.update());
    this.update();
  }

  // The two buttons swap under the pointer and the focus: what presses one twice, a double click or
  // a key that is held, must not press the other.
  listen(button, press) {
    button.addEventListener("click", ({ detail: clicks }) => {
      if (clicks <= 1) press();
    });
    button.addEventListener("keydown", (event) => {
      if (event.repeat) event.preventDefault();
    });
  }

  // A sentence beside the button; what is wrong is red.
  note(sentence, kind = "") {
    const place = byId("render-note");
    place.textContent = sentence;
    place.className = `render-note ${kind}`;
  }

  update() {
    const { view } = this.jobs;
    const isBusy = view !== null;
    if (view?.state === "sending" && byId("cancel").hidden) this.startedAt = performance.now();
    const hadFocus = [byId("cancel"), byId("render")].includes(document.activeElement);
    byId("render").hidden = isBusy;
    byId("cancel").hidden = !isBusy;
    byId("cancel").disabled = view?.cancelling ?? false;
    byId("progress").hidden = !isBusy;
    const percent = percentOf(view);
    document.title = isBusy ? `${percent} % \u00b7 Octet` : "Octet";
    if (hadFocus) byId(isBusy ? "cancel" : "render").focus();
    if (!isBusy) return;
    const words = progressWords(view);
    byId("progress-words").textContent = words;
    const line = byId("progress-line");
    line.setAttribute("aria-valuenow", String(percent));
    line.setAttribute("aria-valuetext", words);
    line.firstElementChild.style.width = `${percent}%`;
    this.announceStage(view, words);
  }

  announceStage(view, words) {
    const stage = `${view.state} ${view.stage} ${view.isLost} ${view.cancelling}`;
    const now = performance.now();
    if (stage === this.said && now - this.saidAt < kAnnounceMs) return;
    this.said = stage;
    this.saidAt = now;
    announce(words);
  }
}
