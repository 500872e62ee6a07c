// Captions from outside: files, what is pasted or dropped, and pictures with a caption inside.
import { parseJson } from "./json_text.js";
import { readPictureTexts } from "./picture_text.js";

const kMostBytes = 64 << 20;
// Where programs keep what a picture was made from; Octet's own first.
const kCaptionKeys = ["caption", "json_prompt", "prompt", "workflow", "parameters", "Description",
  "Comment"];

function isCaption(text) {
  try {
    const { value } = parseJson(text.trim());
    return value instanceof Map && (value.has("compositional_deconstruction") ||
      value.has("high_level_description") || value.has("style_description"));
  } catch {
    return false;
  }
}

function stringsIn(value) {
  if (typeof value === "string") return [value];
  return value instanceof Map || Array.isArray(value) ? [...value.values()].flatMap(stringsIn) : [];
}

// The caption that a text is, or has inside: a ComfyUI workflow has it in one of its nodes, and
// A1111 writes its settings below it. Empty if there is none.
function captionIn(text) {
  const above = text.split(/\n(?:Negative prompt|Steps): /)[0];
  if (isCaption(above)) return above.trim();
  try {
    return stringsIn(parseJson(text).value).find(isCaption) ?? "";
  } catch {
    return "";
  }
}

// What a file of Octet says of how it was made, as a request of POST /v1/jobs has it.
function requestIn({ width, height, texts }) {
  const number = (key) => {
    const text = texts.get(key) ?? "";
    return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
  };
  return {
    size: width && height ? `${width}x${height}` : undefined,
    seed: number("seed"),
    preset: texts.get("preset"),
    steps: number("steps"),
    guidance: number("guidance"),
    negative_prompt: texts.get("negative"),
  };
}

// {text} of a caption or {prompt} of plain words, and {request, blob} if it came with a picture.
// Throws an Error with a sentence for people.
export async function readFile(file) {
  if (file.size > kMostBytes) throw new Error(`${file.name} is too large to be a caption.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const picture = await readPictureTexts(bytes).catch(() => {
    throw new Error(`${file.name} is damaged, and cannot be read.`);
  });
  if (!picture) return readText(new TextDecoder().decode(bytes), file.name);
  const [text] = kCaptionKeys.map((key) => captionIn(picture.texts.get(key) ?? "")).filter(Boolean);
  if (text) {
    const isOurs = picture.texts.has("checkpoint");
    return { text, blob: file, name: file.name,
      request: isOurs ? requestIn(picture) : { size: `${picture.width}x${picture.height}` } };
  }
  throw new Error(`${file.name} has no caption inside. Octet writes one into each picture; ` +
    "other programs may have removed it.");
}

export function readText(text, name = "What was pasted") {
  const trimmed = text.replace(/^\ufeff/, "");
  if (trimmed.trim() === "") throw new Error(`${name} is empty.`);
  if (/^\s*[{[]/.test(trimmed)) return { text: trimmed, name };
  if (trimmed.includes("\0")) throw new Error(`${name} is neither a caption nor a picture.`);
  return { prompt: trimmed.trim(), name };
}

// take(found) hears what is dropped or pasted anywhere, refuse(sentence) what cannot be used.
export function listen(take, refuse) {
  const read = async (reading) => {
    try {
      take(await reading());
    } catch (error) {
      refuse(error.message);
    }
  };
  // Words that are moved within a field stay there.
  const isForField = (event) => !event.dataTransfer.types.includes("Files") &&
    event.target.closest?.("input, textarea");
  document.addEventListener("dragover", (event) => {
    if (isForField(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    if (isForField(event)) return;
    event.preventDefault();
    document.body.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    const text = event.dataTransfer.getData("text/plain");
    if (file) read(() => readFile(file));
    else if (text) read(async () => readText(text, "What was dropped"));
  });
  document.addEventListener("paste", (event) => {
    if (event.target.closest("input, textarea, [contenteditable]")) return;
    const [file] = event.clipboardData.files;
    const text = event.clipboardData.getData("text/plain");
    if (file) read(() => readFile(file));
    else if (text) read(async () => readText(text));
  });
}
