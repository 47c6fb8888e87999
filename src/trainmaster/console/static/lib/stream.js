// The stream of changes: one for a page, closed while the page is hidden.

import { patched } from "./patch.js";

/** @typedef {import("./types.js").Reading} Reading */

/**
 * Watch reads of the API, and call `onReadings` with the newest result of each. Returns a function that ends it.
 * @param {string[]} reads
 * @param {(readings: Reading[], connected: boolean) => void} onReadings
 */
export function watch(reads, onReadings) {
  /** @type {Reading[]} */
  let readings = reads.map(() => ({ value: undefined, asOf: null, error: null }));
  /** @type {EventSource | null} */
  let source = null;
  const query = reads.map((each) => `watch=${encodeURIComponent(each)}`).join("&");

  const open = () => {
    source = new EventSource(`events?${query}`);
    source.onmessage = (event) => {
      const { watch: number, asOf, value, changes, error } = JSON.parse(event.data);
      const before = readings[number];
      const now = error ? before.value : value === undefined ? patched(before.value, changes) : value;
      readings = readings.map((each, index) => (index === number ? { value: now, asOf, error: error ?? null } : each));
      onReadings(readings, true);
    };
    source.onerror = () => onReadings(readings, false);
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const follow = () => (document.hidden ? close() : source === null && open());
  document.addEventListener("visibilitychange", follow);
  follow();
  return () => {
    document.removeEventListener("visibilitychange", follow);
    close();
  };
}
