// The server: one function for each thing that the page asks of it. A key, where the server wants
// one, is kept for this tab alone.
import { sentence } from "./dom.js";

const kKey = "octet.key";
const kWaitsMs = [300, 700, 1500, 3000, 5000]; // before a dropped stream is taken up again
const kMostDrops = 60; // in a row
const kQuietMs = 45000; // the server says something every 15 s

let askForKey = async () => null;
let key = storedKey();

function storedKey() {
  try {
    return sessionStorage.getItem(kKey) ?? "";
  } catch {
    return ""; // nothing may be stored here: it is kept until the page is left
  }
}

function takeKey(given) {
  key = given;
  try {
    sessionStorage.setItem(kKey, given);
  } catch {
    // As above.
  }
}

// ask(wasWrong) resolves to a key, or null where the person gives none.
export function onKeyWanted(ask) {
  askForKey = ask;
}

export class ServerError extends Error {
  constructor(status, error, retryAfter) {
    super(sentence(error?.message || `the server answered with status ${status}`));
    this.status = status;
    this.param = error?.param ?? null;
    this.code = error?.code ?? null;
    this.retryAfter = retryAfter;
  }
}

let asking = null; // one dialog, however many requests want the key

async function keyAgain(used) {
  if (key !== used) return true; // another request has got one
  asking ??= askForKey(used !== "").finally(() => (asking = null));
  const given = await asking;
  if (!given) return false;
  takeKey(given);
  return true;
}

async function ask(path, options = {}) {
  for (;;) {
    const used = key;
    const headers = { ...options.headers };
    if (used) headers.Authorization = `Bearer ${used}`;
    let answer;
    try {
      answer = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServerError(0, { message: "The server cannot be reached. Is it running?" });
    }
    if (answer.ok) return answer;
    if (answer.status === 401 && (await keyAgain(used))) continue;
    const text = await answer.text();
    let error = null;
    try {
      error = JSON.parse(text).error;
    } catch {
      // A proxy's page, say.
    }
    throw new ServerError(answer.status, error, Number(answer.headers.get("Retry-After")) || 0);
  }
}

async function askJson(path, options) {
  return (await ask(path, options)).json();
}

function posted(body, more = {}) {
  const headers = { "Content-Type": "application/json", ...more.headers };
  return { method: "POST", body: JSON.stringify(body), ...more, headers };
}

export const models = () => askJson("/v1/models");
export const checkCaption = (text, signal) =>
  askJson("/v1/captions/check", posted({ caption: text }, { signal }));
export const job = (id) => askJson(`/v1/jobs/${encodeURIComponent(id)}`);
export const cancelJob = (id) =>
  askJson(`/v1/jobs/${encodeURIComponent(id)}`, { method: "DELETE" });
export const picture = async (url) => (await ask(url)).blob();

// The same key gives the same job, so that a request whose answer was lost is repeated.
export async function submit(request) {
  const once = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`; // not in plain HTTP
  const options = posted(request, { headers: { "Idempotency-Key": once } });
  try {
    return await askJson("/v1/jobs", options);
  } catch (error) {
    if (error.status !== 0) throw error;
    await new Promise((done) => setTimeout(done, kWaitsMs[2]));
    return askJson("/v1/jobs", options);
  }
}

// {id, event, data} of each event of a stream of server-sent events.
async function* eventsIn(body, onBytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { id: "", event: "", data: "" };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.trim() === "") {
        if (event.event) yield { ...event, data: JSON.parse(event.data) };
        event = { id: "", event: "", data: "" };
        continue;
      }
      const colon = line.indexOf(":");
      const field = line.slice(0, colon);
      const text = line.slice(colon + 1).replace(/^ /, "").replace(/\r$/, "");
      if (field in event) event[field] += text;
    }
  }
}

const kLast = ["completed", "failed", "cancelled"];

// Those of an answer of /events. Where the job has no more of them, its end may yet not have been
// heard: a server that was started anew counts from the beginning, and knows of fewer.
async function* eventsOf(answer, id, onBytes) {
  if (answer.status !== 204) {
    yield* eventsIn(answer.body, onBytes);
    return;
  }
  const ended = await job(id);
  for (const data of ended.pictures) yield { id: "", event: "picture", data };
  yield { id: "", event: ended.state, data: ended };
}

// Calls tell(event, data) for each event of a job until its last, over dropped connections. Only
// "picture" may come twice, where the server was started anew. lost(isLost) hears when the
// connection goes and comes.
export async function follow(id, tell, lost, signal) {
  let last = "";
  let drops = 0;
  for (;;) {
    // A connection that is gone without a word, such as after a sleep, is given up.
    const connection = new AbortController();
    const hangUp = () => connection.abort();
    signal.addEventListener("abort", hangUp);
    let timer = 0;
    const wake = () => {
      clearTimeout(timer);
      timer = setTimeout(hangUp, kQuietMs);
    };
    wake();
    try {
      const headers = last === "" ? {} : { "Last-Event-ID": last };
      const answer = await ask(`/v1/jobs/${encodeURIComponent(id)}/events`, {
        headers, signal: connection.signal,
      });
      if (drops > 0) lost(false);
      for await (const { id: number, event, data } of eventsOf(answer, id, wake)) {
        drops = 0;
        if (number !== "") last = number;
        tell(event, data);
        if (kLast.includes(event)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      const isGone = error instanceof ServerError && error.status >= 400 && error.status < 500;
      if (isGone && error.status !== 429) throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", hangUp);
    }
    if (signal.aborted) return;
    if (++drops > kMostDrops) {
      throw new ServerError(0, {
        message: "The connection was lost. Reload the page to look again.",
      });
    }
    lost(true);
    const wait = kWaitsMs[Math.min(drops - 1, kWaitsMs.length - 1)];
    await new Promise((done) => setTimeout(done, wait));
  }
}
