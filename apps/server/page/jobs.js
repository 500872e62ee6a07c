// The job that renders: asked for, followed, cancelled, and found again when the page is reloaded.
import * as api from "./api.js";
import { keepPicture, recall, remember } from "./store.js";

const kJob = "job"; // {id, caption, settings} of the one that runs
const kTriesMs = [500, 2000, 5000]; // between tries to fetch a picture

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

// Events: "change" (of `view`), "preview" (detail: {blob, width, height}), "picture" (as kept),
// "end" (detail: {job, kept}), "gone" (the server does not know the job of before a reload),
// "error" (detail: {error, kept}; `kept` is null where a job goes on).
export class Jobs extends EventTarget {
  constructor() {
    super();
    this.view = null; // what is known of the job: {state, position, eta, stage, done, total, ...}
    this.stop = null;
  }

  get isBusy() {
    return this.view !== null;
  }

  tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }

  // `kept` goes with the pictures: the caption and the settings as they were in the editor.
  async start(request, kept) {
    this.set({ state: "sending" });
    try {
      const job = await api.submit(request);
      remember(kJob, { id: job.id, ...kept });
      this.id = job.id;
      if (this.view.cancelling) await this.askToCancel(); // while it was on its way
      await this.follow(job, kept);
    } catch (error) {
      this.fail(error, kept);
    }
  }

  // The job of before a reload, if there is one.
  async resume() {
    const former = recall(kJob);
    if (!former || this.isBusy) return;
    const { id, ...kept } = former;
    this.id = id;
    this.set({ state: "finding" }); // at once, so that no other job is begun beside it
    try {
      await this.follow(await api.job(id), kept);
    } catch (error) {
      if (error.status !== 404) {
        this.fail(error, kept);
        return;
      }
      remember(kJob, null);
      this.set(null);
      this.tell("gone");
    }
  }

  async follow(job, kept) {
    this.stop = new AbortController();
    this.set({ state: job.state, position: job.position, eta: job.eta_s,
      cancelling: job.cancelling || this.view.cancelling });
    const blobs = new Map(); // pictures by index
    let last = null;
    const waiting = new Map(); // for pictures by index
    await api.follow(job.id, (event, data) => {
      if (event === "picture") {
        if (waiting.has(data.index)) return;
        waiting.set(data.index, this.fetchPicture(job, data, kept, blobs));
      } else if (event === "preview") this.tell("preview", { width: data.width, height: data.height,
        blob: new Blob([bytesOf(data.b64_json)], { type: "image/png" }) });
      else if (["completed", "failed", "cancelled"].includes(event)) last = data;
      else this.takeEvent(event, data);
    }, (isLost) => this.set({ ...this.view, isLost }), this.stop.signal);
    const fetched = await Promise.allSettled(waiting.values());
    if (!last) return; // the page is left
    // A server that was started anew knows neither of them, nor what was asked for.
    for (const picture of last.started_at ? blobs.values() : []) {
      await keepPicture({ ...picture, report: last.report, warnings: last.warnings,
        seconds: last.ended_at - last.started_at, request: last.request });
    }
    remember(kJob, null);
    this.set(null);
    this.tell("end", { job: last, kept });
    const lost = fetched.find(({ status }) => status === "rejected");
    if (lost) this.tell("error", { error: lost.reason, kept });
  }

  takeEvent(event, data) {
    if (event === "queued") {
      this.set({ ...this.view, state: "queued", position: data.position, eta: data.eta_s });
    } else if (event === "started") {
      this.set({ ...this.view, state: "running", position: null });
    } else if (event === "progress") {
      const { stage, done, total, fraction, eta_s: eta } = data;
      this.set({ ...this.view, state: "running", stage, done, total, fraction, eta });
    }
  }

  // The server may be out of reach for a moment.
  async download(url) {
    for (const pause of kTriesMs) {
      try {
        return await api.picture(url);
      } catch (error) {
        if (![0, 429].includes(error.status) && !(error.status >= 500)) throw error;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
    return api.picture(url);
  }

  async fetchPicture(job, data, kept, blobs) {
    const blob = await this.download(data.url);
    const picture = { id: `${job.id}/${data.index}`, made: job.created_at * 1000 + data.index, blob,
      width: data.width, height: data.height, seed: data.seed, format: data.format,
      look: data.look, request: job.request, report: null, warnings: job.warnings ?? [],
      seconds: null, ...kept };
    blobs.set(data.index, picture);
    await keepPicture(picture);
    this.tell("picture", picture);
  }

  set(view) {
    this.view = view;
    this.tell("change");
  }

  fail(error, kept) {
    this.set(null);
    this.tell("error", { error, kept });
  }

  async cancel() {
    if (!this.view || this.view.cancelling) return;
    this.set({ ...this.view, cancelling: true });
    if (this.view.state !== "sending") await this.askToCancel();
  }

  async askToCancel() {
    try {
      // One that has ended meanwhile would be forgotten with its pictures.
      const { state } = await api.job(this.id);
      if (["queued", "running"].includes(state)) await api.cancelJob(this.id);
    } catch (error) {
      if (error.status === 404 || !this.view) return; // it has ended
      this.set({ ...this.view, cancelling: false });
      this.tell("error", { error, kept: null });
    }
  }
}
