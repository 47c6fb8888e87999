// Requests to the console's own process. All addresses are relative: the console may be below a proxy's path.

/** @typedef {import("./types.js").Problem} Problem */

/** @param {string} path @param {RequestInit} [options] */
async function ask(path, options) {
  const response = await fetch(path, options);
  const body = await response.json().catch(() => ({}));
  const { message = `status ${response.status}`, hint = null, type = "", field = null } = body.error ?? {};
  if (!response.ok) throw Object.assign(new Error(message), { hint, type, field });
  return body;
}

/** Return whose identity the console uses, and the queue's address. */
export const session = () => ask("session");

/** Return the API's answer to a read, once. @param {string} path */
export const read = (path) => ask(`api${path}`);

/** @type {Promise<any> | null} */
let asked = null;

/** Return the API's own document, asked for once. @returns {Promise<{paths: Record<string, any>, components: {schemas: Record<string, any>}}>} */
export const apiDocument = () => (asked ??= read("/openapi.json").catch((error) => ((asked = null), Promise.reject(error))));

/** Return the names of jobs in all states that begin so. @param {string} prefix @returns {Promise<string[]>} */
export const namesFrom = (prefix) =>
  read(`/jobs?${new URLSearchParams({ prefix, limit: "8" })}`).then(({ jobs }) => jobs.map((/** @type {any} */ job) => job.jobName));

/** Return the names of all shares and pools. @returns {Promise<{shares: string[], pools: string[]}>} */
export const namesOfAll = () => read("/shares").then(({ shares, pools }) => ({ shares: shares.map(nameOf), pools: pools.map(nameOf) }));

/** @param {{name: string}} one */
const nameOf = ({ name }) => name;

/** Return the first jobs of the queue. @returns {Promise<import("./types.js").QueuePage>} */
export const firstOfQueue = () => ask("api/queue?limit=100");

/**
 * Change something through the API, and return its answer.
 * @param {string} method @param {string} path @param {object} [body]
 */
export const change = (method, path, body) => send(`api${path}`, method, body);

/** @param {string} address @param {string} method @param {object} [body] */
const send = (address, method, body) =>
  ask(address, {
    method,
    headers: { "X-Trainmaster-Console": "1", "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });

/** Replays of a draft of the settings, which the console's own process runs: the newest, start one, cancel it. */
export const replayed = {
  /** @returns {Promise<import("../views/replay.js").Status>} */
  status: () => ask("replay"),
  /** @param {any} draft @returns {Promise<import("../views/replay.js").Status>} */
  start: (draft) => send("replay", "POST", { draft }),
  /** @returns {Promise<import("../views/replay.js").Status>} */
  cancel: () => send("replay", "DELETE"),
};

/** @param {string} name */
const jobPath = (name) => `/jobs/${encodeURIComponent(name)}`;

/** Requests of the actions. @type {Record<string, (name: string, to: import("./types.js").JobChange) => Promise<any>>} */
export const ACTIONS = {
  hold: (name) => change("PATCH", jobPath(name), { hold: true }),
  release: (name) => change("PATCH", jobPath(name), { hold: false }),
  priority: (name, to) => change("PATCH", jobPath(name), to),
  size: (name, to) => change("PATCH", jobPath(name), to),
  cancel: (name) => change("DELETE", jobPath(name)),
};
