// The page Settings as values: help from the API's schema, problems of a draft, and what it would change.

import { duration } from "../lib/time.js";

/** @typedef {{[name: string]: any}} Schema */
/** @typedef {(string | number)[]} Path */
/** @typedef {{path: Path, before: any, after: any}} Change */
/** @typedef {{path: Path, message: string}} Problem */
/** @typedef {{name: string, about: string, values: string, standard: string}} Help */

const ROOT = "Settings";

/** @param {Path} path */
const isSeconds = (path) => String(path[path.length - 1]).endsWith("Seconds");

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {any} one @param {any} other */
const same = (one, other) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

/** @param {any} value @returns {any} */
const sorted = (value) =>
  Array.isArray(value) ? value.map(sorted) : isObject(value) ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value;

/** Return the settings of an answer without its version. @param {any} answer */
export function settingsOf(answer) {
  const { version, ...settings } = answer;
  void version;
  return settings;
}

/** Return settings as the text of a draft. @param {any} settings */
export const textOf = (settings) => JSON.stringify(settings, null, 2);

/** Return a path as people write it: "shares.vision.nominal". @param {Path} path */
export const pathText = (path) => path.map(String).join(".");

/** Return a value as one short line; a number of seconds also as a duration. @param {any} value @param {Path} [path] */
export const valueText = (value, path = []) => (typeof value === "number" && isSeconds(path) && value >= 60 ? `${value} (${duration(value * 1000)})` : value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value, null, 1).replace(/\n\s*/g, " "));

/**
 * Return the draft as a value, or why it is none.
 * @param {string} text @returns {{value: any, problem: string}}
 */
export function parsed(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) ? { value, problem: "" } : { value: null, problem: "The document is no JSON object." };
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    const position = /position (\d+)/.exec(message);
    const line = position ? `Line ${text.slice(0, Number(position[1])).split("\n").length}: ` : "";
    return { value: null, problem: `${line}${message.replace(/ in JSON at position.*$/, "")}.` };
  }
}

/**
 * Return the settings that differ; parts that both have are compared member by member.
 * @param {any} before @param {any} after @param {Path} [path] @returns {Change[]}
 */
export function changesBetween(before, after, path = []) {
  if (same(before, after)) return [];
  if (!isObject(before) || !isObject(after)) return [{ path, before, after }];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => changesBetween(before[key], after[key], [...path, key]));
}

/**
 * Return settings with changes applied; one without a value after it removes its member.
 * @param {any} settings @param {Change[]} changes
 */
export const applied = (settings, changes) => changes.reduce((found, { path, after }) => put(found, path, after), settings);

/** @param {any} value @param {Path} path @param {any} after @returns {any} */
function put(value, [step, ...rest], after) {
  const copy = isObject(value) ? { ...value } : {};
  if (rest.length) copy[step] = put(copy[step], rest, after);
  else if (after === undefined) delete copy[step];
  else copy[step] = after;
  return copy;
}

/**
 * Return the paths that both changed to different values: the later save would undo the earlier one.
 * @param {Change[]} mine @param {Change[]} theirs
 */
export const collisions = (mine, theirs) =>
  mine.filter((one) => theirs.some((other) => overlap(one.path, other.path) && !(one.path.length === other.path.length && same(one.after, other.after)))).map((one) => pathText(one.path));

/** Return whether one path leads to a part of the other, or to the same member. @param {Path} one @param {Path} other */
const overlap = (one, other) => other.slice(0, one.length).every((step, number) => step === one[number]);

/**
 * Return the path of the member at a place of the text, which need not be valid JSON yet.
 * @param {string} text @param {number} offset @returns {Path}
 */
export function pathAt(text, offset) {
  const line = text.lastIndexOf("\n", offset - 1) + 1;
  const indent = (/^[ \t]*/.exec(text.slice(line)) ?? [""])[0].length;
  const until = Math.max(offset, text[line + indent] === '"' ? line + indent + 1 : offset);
  /** @type {{list: boolean, key: string | number | null, open: boolean}[]} */
  const stack = [];
  for (let at = 0; at < until; at += 1) {
    const top = stack[stack.length - 1];
    const letter = text[at];
    if (letter === '"') {
      const string = /^"(?:[^"\\\n]|\\.)*/.exec(text.slice(at))?.[0] ?? '"';
      if (top && !top.list && top.open) Object.assign(top, { key: string.slice(1), open: false });
      at += string.length;
    } else if (letter === "{" || letter === "[") stack.push({ list: letter === "[", key: letter === "[" ? 0 : null, open: true });
    else if (letter === "}" || letter === "]") stack.pop();
    else if (letter === "," && top) Object.assign(top, top.list ? { key: Number(top.key) + 1 } : { key: null, open: true });
  }
  return stack.map((each) => each.key).filter((key) => key !== null);
}

/**
 * Return the place of a member in the text; 0 if it is not there.
 * @param {string} text @param {string} path
 */
export function offsetOf(text, path) {
  for (const { index } of text.matchAll(/"(?:[^"\\\n]|\\.)*"\s*:/g)) if (pathText(pathAt(text, index + 1)) === path) return index + 1;
  return 0;
}

/** @param {Schema} schemas @param {Schema} node @returns {Schema} */
function resolved(schemas, node) {
  const inner = node.anyOf ? { ...node.anyOf.find((/** @type {Schema} */ each) => each.type !== "null"), nullable: true, ...without(node, "anyOf") } : node;
  if (!inner.$ref) return inner;
  const { $ref, ...own } = inner;
  return { ...schemas[$ref.split("/").slice(-1)[0]], ...own };
}

/** @param {Schema} node @param {string} name */
const without = (node, name) => Object.fromEntries(Object.entries(node).filter(([key]) => key !== name));

/**
 * Return the schema of a member; null if there is none.
 * @param {Schema} schemas @param {Path} path
 */
export function schemaAt(schemas, path) {
  let node = resolved(schemas, schemas[ROOT] ?? {});
  for (const step of path) {
    const next = node.properties && Object.hasOwn(node.properties, step) ? node.properties[step] : typeof step === "number" ? node.items : node.additionalProperties;
    if (!next) return null;
    node = resolved(schemas, next);
  }
  return node;
}

/**
 * Return what there is to know about a member; null if it is no setting.
 * @param {Schema} schemas @param {Path} path @returns {Help | null}
 */
export function helpOf(schemas, path) {
  const node = path.length ? schemaAt(schemas, path) : null;
  if (!node) return null;
  const standard = "default" in node ? valueText(node.default, path) : "";
  return { name: pathText(path), about: firstLine(node.description ?? ""), values: valuesText(node, path), standard };
}

/** @param {string} text */
const firstLine = (text) => text.split("\n\n")[0];

/** Return the allowed values in words. @param {Schema} node @param {Path} path */
function valuesText(node, path) {
  const or = node.nullable ? ", or null" : "";
  if (node.enum) return `one of ${node.enum.join(", ")}${or}`;
  if (node.type === "boolean") return `true or false${or}`;
  if (node.type === "array") return `a list${or}`;
  if (node.type === "object") return `an object${or}`;
  if (node.type !== "number" && node.type !== "integer") return node.type ? `text${or}` : "";
  const noun = node.type === "integer" ? "a whole number" : "a number";
  const low = node.exclusiveMinimum !== undefined ? `more than ${node.exclusiveMinimum}` : node.minimum !== undefined ? `at least ${node.minimum}` : "";
  const high = node.maximum !== undefined ? `at most ${valueText(node.maximum, path)}` : "";
  return [noun, low, high].filter(Boolean).join(", ") + or;
}

/**
 * Return the members of all settings in the order of the schema, for a table of reference.
 * @param {Schema} schemas @param {Path} [path] @returns {Help[]}
 */
export function reference(schemas, path = []) {
  const node = schemaAt(schemas, path);
  if (!node) return [];
  const inner = isObject(node.additionalProperties) && resolved(schemas, node.additionalProperties).type === "object" ? ["NAME"] : Object.keys(node.properties ?? {});
  return inner.filter((key) => path.length || key !== "version").flatMap((key) => {
    const help = helpOf(schemas, [...path, key]);
    return help ? [help, ...reference(schemas, [...path, key])] : [];
  });
}

/**
 * Return what is wrong with a draft by the schema. The API checks more, such as rules between settings.
 * @param {Schema} schemas @param {any} value @param {Path} [path] @returns {Problem[]}
 */
export function problemsOf(schemas, value, path = []) {
  const node = schemaAt(schemas, path);
  if (!node) return [{ path, message: "is no setting" }];
  if (value === null && node.nullable) return [];
  if (isObject(value) && node.type === "object") return Object.keys(value).flatMap((key) => problemsOf(schemas, value[key], [...path, key]));
  if (Array.isArray(value) && node.type === "array") return value.flatMap((each, number) => problemsOf(schemas, each, [...path, number]));
  return isAllowed(node, value) ? [] : [{ path, message: `is ${valueText(value)}; allowed: ${valuesText(node, path)}` }];
}

/** @param {Schema} node @param {any} value */
function isAllowed(node, value) {
  if (node.enum) return node.enum.includes(value);
  if (node.type === "number" || node.type === "integer") {
    if (typeof value !== "number" || (node.type === "integer" && !Number.isInteger(value))) return false;
    return value >= (node.minimum ?? -Infinity) && value <= (node.maximum ?? Infinity) && value > (node.exclusiveMinimum ?? -Infinity);
  }
  return typeof value === node.type;
}
