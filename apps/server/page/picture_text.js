// Texts in picture files: PNG (tEXt, zTXt, iTXt), and what Octet writes into JPEG and WebP (XMP).
// The files are strangers': every length is checked.

const kPngBegin = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const kXmpHeader = "http://ns.adobe.com/xap/1.0/\0";
const kMostTextBytes = 16 << 20; // unpacked, of all texts

// TextDecoder reads windows-1252 instead.
const latin1 = (bytes) => {
  const kPiece = 4096; // arguments of a call
  let text = "";
  for (let at = 0; at < bytes.length; at += kPiece) {
    text += String.fromCharCode(...bytes.subarray(at, at + kPiece));
  }
  return text;
};
const utf8 = (bytes) => new TextDecoder("utf-8").decode(bytes);

async function inflated(bytes, most) {
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const parts = [];
  let size = 0;
  const reader = unpacked.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) throw new Error("The picture has too much text.");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// What stands before the next zero byte, and what follows it.
function named(bytes) {
  const end = bytes.indexOf(0);
  return end < 0 ? [bytes, bytes.subarray(bytes.length)] : [bytes.subarray(0, end),
    bytes.subarray(end + 1)];
}

async function pngText(type, data, most) {
  const [key, rest] = named(data);
  if (type === "tEXt") return [latin1(key), latin1(rest)];
  if (type === "zTXt") return [latin1(key), latin1(await inflated(rest.subarray(1), most))];
  const isPacked = rest[0] === 1;
  const [, afterLanguage] = named(rest.subarray(2));
  const [, text] = named(afterLanguage);
  return [latin1(key), utf8(isPacked ? await inflated(text, most) : text)];
}

async function readPng(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = { width: 0, height: 0, texts: new Map() };
  let at = kPngBegin.length;
  let left = kMostTextBytes;
  while (at + 12 <= bytes.length) {
    const length = view.getUint32(at);
    const type = latin1(bytes.subarray(at + 4, at + 8));
    if (at + 12 + length > bytes.length) break; // cut off
    const data = bytes.subarray(at + 8, at + 8 + length);
    if (type === "IHDR" && length >= 8) {
      found.width = view.getUint32(at + 8);
      found.height = view.getUint32(at + 12);
    } else if (["tEXt", "zTXt", "iTXt"].includes(type)) {
      const [key, text] = await pngText(type, data, left);
      left -= text.length;
      if (!found.texts.has(key)) found.texts.set(key, text);
    }
    at += 12 + length;
  }
  return found;
}

function xmpTexts(packet) {
  const found = /<octet:metadata>([\s\S]*?)<\/octet:metadata>/.exec(packet);
  if (!found) return new Map();
  const entities = { amp: "&", lt: "<", gt: ">" };
  const json = found[1].replace(/&(amp|lt|gt);/g, (_, name) => entities[name]);
  return new Map(Object.entries(JSON.parse(json)));
}

function readJpeg(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = { width: 0, height: 0, texts: new Map() };
  let at = 2;
  while (at + 4 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1];
    const length = view.getUint16(at + 2);
    if (marker === 0xda || length < 2 || at + 2 + length > bytes.length) break;
    const data = bytes.subarray(at + 4, at + 2 + length);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame && data.length >= 5) {
      found.height = view.getUint16(at + 5);
      found.width = view.getUint16(at + 7);
    } else if (marker === 0xe1 && latin1(data.subarray(0, kXmpHeader.length)) === kXmpHeader) {
      found.texts = xmpTexts(utf8(data.subarray(kXmpHeader.length)));
    }
    at += 2 + length;
  }
  return found;
}

function readWebp(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = { width: 0, height: 0, texts: new Map() };
  let at = 12;
  while (at + 8 <= bytes.length) {
    const type = latin1(bytes.subarray(at, at + 4));
    const length = view.getUint32(at + 4, true);
    if (at + 8 + length > bytes.length) break;
    const data = bytes.subarray(at + 8, at + 8 + length);
    if (type === "VP8X" && length >= 10) {
      found.width = (data[4] | (data[5] << 8) | (data[6] << 16)) + 1;
      found.height = (data[7] | (data[8] << 8) | (data[9] << 16)) + 1;
    } else if (type === "XMP ") {
      found.texts = xmpTexts(utf8(data));
    }
    at += 8 + length + (length % 2);
  }
  return found;
}

// {width, height, texts: Map of key to text}, or null for what is none of these pictures.
export async function readPictureTexts(bytes) {
  if (kPngBegin.every((byte, i) => bytes[i] === byte)) return readPng(bytes);
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return readJpeg(bytes);
  const isRiff = latin1(bytes.subarray(0, 4)) === "RIFF";
  return isRiff && latin1(bytes.subarray(8, 12)) === "WEBP" ? readWebp(bytes) : null;
}
