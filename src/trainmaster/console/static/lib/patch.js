// Applies the differences that the server sends (differences.py). What has not changed stays the same object, so that it is not drawn again.

/**
 * Return the value with the changes: each is a path and the new value, or a path alone for a member that is gone. A path
 * with new items and places rearranges a list: each place is an old one, or negative for the next new item.
 * @param {any} value @param {any[][]} changes
 */
export const patched = (value, changes) => changes.reduce((result, [path, ...news]) => put(result, path, news), value);

/** @param {any} value @param {(string | number)[]} path @param {any[]} news @returns {any} */
function put(value, path, news) {
  if (!path.length) return news.length > 1 ? arranged(value, news[0], news[1]) : news[0];
  const [step, ...rest] = path;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  if (!rest.length && !news.length) delete copy[step];
  else copy[step] = put(copy[step], rest, news);
  return copy;
}

/** @param {any[]} old @param {any[]} added @param {number[]} places */
function arranged(old, added, places) {
  const waiting = [...added];
  return places.map((place) => (place < 0 ? waiting.shift() : old[place]));
}
