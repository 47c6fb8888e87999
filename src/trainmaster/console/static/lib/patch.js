// Applies the differences that the server sends. What has not changed stays the same object, so that it is not drawn again.

/**
 * Return the value with the changes: each is a path and the new value, or a path alone for a member that is gone.
 * @param {any} value @param {any[][]} changes
 */
export const patched = (value, changes) => changes.reduce((result, [path, ...news]) => put(result, path, news), value);

/** @param {any} value @param {(string | number)[]} path @param {any[]} news @returns {any} */
function put(value, path, news) {
  if (!path.length) return news[0];
  const [step, ...rest] = path;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  if (!rest.length && !news.length) delete copy[step];
  else copy[step] = put(copy[step], rest, news);
  return copy;
}
