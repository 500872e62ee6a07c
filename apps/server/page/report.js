// What ran, in plain words: rows of [name, text].
import { sentence } from "./dom.js";

// Presets by what they are for.
export const kSpeedNames = new Map([["turbo", "Fast"], ["default", "Balanced"],
  ["quality", "Best"]]);

export function seconds(value) {
  if (!Number.isFinite(value)) return "";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 90) return `${Math.round(value)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

// The share of the network's arithmetic that ran in INT8. The text encoder and the decoder of the
// picture are no part of it.
function shareOfInt8(kernels) {
  let int8 = 0;
  let all = 0;
  for (const { layer, path, us, tops } of kernels) {
    if (!(tops > 0) || /^(?:text|vae)\./.test(layer)) continue;
    all += tops * us;
    if (path === "int8") int8 += tops * us;
  }
  return all > 0 ? int8 / all : null;
}

function timeRow(picture, report) {
  const parts = [["text_s", "reading"], ["load_s", "loading"], ["denoise_s", "painting"],
    ["decode_s", "finishing"]];
  const told = parts.filter(([key]) => report?.[key] >= 0.05)
    .map(([key, word]) => `${seconds(report[key])} ${word}`);
  const all = seconds(picture.seconds);
  if (told.length === 0) return all;
  return all ? `${all}: ${told.join(", ")}` : told.join(", ");
}

function int8Row(report) {
  const { linears_ran: linears, kernels = [] } = report;
  const share = shareOfInt8(kernels);
  if (share === null || !linears) return "";
  if (share === 0) return "none: this model, or this device, computes in 16 bits";
  const percent = share > 0.995 ? "over 99 %" : `${Math.round(share * 100)} %`;
  return `${percent} of the painting network's arithmetic, in ${linears.int8} of its ` +
    `${linears.int8 + linears.protected + linears.kept + linears.floating + linears.fake} layers`;
}

function kernelRow(report) {
  const names = new Map();
  for (const { kernel, path } of report.kernels ?? []) {
    if (kernel) names.set(kernel, path);
  }
  return [...names].map(([kernel, path]) => `${kernel} (${path})`).join(", ");
}

// The server's remarks begin with the field of the request that they are about, which nobody sees
// here.
export function remarkOf(warning) {
  return sentence(warning.replace(/^json_prompt: /, ""));
}

// `picture` as the gallery keeps it.
export function reportRows(picture) {
  const { request = {}, report } = picture;
  const steps = report?.steps ?? request.steps;
  const speed = kSpeedNames.get(request.preset) ?? request.preset;
  const loras = (request.lora ?? []).map(({ name, strength }) => `${name} \u00d7 ${strength}`);
  const guidance = request.guidance ? [request.guidance].flat().join(", ") : "";
  return [
    ["Seed", String(picture.seed)],
    ["Size", `${picture.width} \u00d7 ${picture.height}`],
    ["Speed", [speed, steps ? `${steps} steps` : ""].filter(Boolean).join(", ")],
    ["Guidance", guidance],
    ["LoRAs", loras.join(", ")],
    ["Avoided", request.negative_prompt ?? ""],
    ["Time", timeRow(picture, report)],
    ["INT8", report ? int8Row(report) : ""],
    ["Kernels", report ? kernelRow(report) : ""],
    ["Device", report?.device ?? ""],
    ["Model", report?.checkpoint ?? ""],
  ].filter(([, text]) => text);
}
