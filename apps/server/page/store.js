// What stays when the page is reloaded: the pictures in IndexedDB, everything small in
// localStorage. Where a browser allows neither, the page works and forgets.

const kStore = "pictures";
export const kMostPictures = 200; // the oldest make room

function asPromise(request) {
  return new Promise((done, fail) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
}

let opening = null;

function database() {
  opening ??= new Promise((done, fail) => {
    const request = indexedDB.open("octet", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(kStore, { keyPath: "id" }).createIndex("made", "made");
    };
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
  return opening;
}

async function within(mode, work) {
  const transaction = (await database()).transaction(kStore, mode);
  const isDone = new Promise((done, fail) => {
    transaction.oncomplete = done;
    transaction.onerror = transaction.onabort = () => fail(transaction.error);
  });
  const [result] = await Promise.all([work(transaction.objectStore(kStore)), isDone]);
  return result;
}

const memory = new Map(); // where there is no database

// Newest first. One is {id, made, blob, width, height, seed, format, look, request, report,
// warnings, seconds}.
export async function allPictures() {
  let pictures;
  try {
    pictures = await within("readonly", (store) => asPromise(store.getAll()));
  } catch {
    pictures = [];
  }
  // Those that found no room in the database.
  const known = new Set(pictures.map(({ id }) => id));
  pictures.push(...[...memory.values()].filter(({ id }) => !known.has(id)));
  return pictures.sort((a, b) => b.made - a.made);
}

export async function keepPicture(picture) {
  memory.set(picture.id, picture);
  try {
    await within("readwrite", (store) => asPromise(store.put(picture)));
    memory.delete(picture.id);
  } catch {
    // Full, or not allowed: it is there until the page is left.
  }
  const all = await allPictures();
  for (const old of all.slice(kMostPictures)) await dropPicture(old.id);
}

export async function dropPicture(id) {
  memory.delete(id);
  try {
    await within("readwrite", (store) => asPromise(store.delete(id)));
  } catch {
    // It was only in memory.
  }
}

export function remember(name, value) {
  try {
    if (value === null) localStorage.removeItem(`octet.${name}`);
    else localStorage.setItem(`octet.${name}`, JSON.stringify(value));
  } catch {
    // Not allowed here.
  }
}

export function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(`octet.${name}`));
  } catch {
    return null;
  }
}
