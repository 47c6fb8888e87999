// Addresses of pages. They are in the fragment, so that the console works below any path, such as a proxy's.

/** @typedef {import("./types.js").Route} Route */

/**
 * Return the page, the job and the query that a fragment names: "#/job/bert-1", "#/queue?state=held".
 * @param {string} hash @returns {Route}
 */
export function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [page, name = ""] = path.split("/");
  return { page: page || "now", name: decoded(name), query: Object.fromEntries(new URLSearchParams(query)) };
}

/**
 * Return the fragment of a page. Empty parameters are left out.
 * @param {string} page @param {{name?: string, query?: Record<string, string | null | undefined>}} [parts]
 */
export function hashOf(page, { name = "", query = {} } = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  const text = new URLSearchParams(/** @type {[string, string][]} */ (given)).toString();
  return `#/${page}${name ? `/${encodeURIComponent(name)}` : ""}${text ? `?${text}` : ""}`;
}

/** @param {string} name */
export const jobHash = (name) => hashOf("job", { name });

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Return a read of the API with its parameters; empty ones are left out.
 * @param {string} path @param {Record<string, string | number | null | undefined>} [query]
 */
export function readPath(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}
