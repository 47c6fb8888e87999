// Keyboard shortcuts. Those of one letter can be switched off, since screen readers use letters too.

export const SHORTCUTS = [
  ["g n", "Now"],
  ["g q", "Queue"],
  ["g h", "Shares"],
  ["g t", "Timeline"],
  ["g p", "Pools"],
  ["g l", "Plan a job"],
  ["g r", "Reports"],
  ["g s", "Settings"],
  ["g a", "Audit"],
  ["/", "Filter"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the job of the row"],
  ["x", "Select the row"],
  ["Ctrl-K", "Go to a job by name"],
  ["?", "This help"],
];
const PAGES = /** @type {Record<string, string>} */ ({
  n: "#/now",
  q: "#/queue",
  t: "#/timeline",
  p: "#/pools",
  l: "#/plan",
  h: "#/shares",
  r: "#/reports",
  s: "#/settings",
  a: "#/audit",
});

/** The row that had the focus last: a person who comes back to a list goes on from there. */
let last = "";

/** Move the focus to the next or previous row. @param {number} step */
function move(step) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row]")]);
  const row = document.activeElement?.closest("tr, li")?.querySelector("[data-row]") ?? rows.find((each) => each.textContent === last);
  const at = row ? rows.indexOf(/** @type {HTMLElement} */ (row)) : step > 0 ? -1 : rows.length;
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  next?.focus();
  last = next?.textContent ?? "";
}

const select = () =>
  /** @type {HTMLElement | null | undefined} */ (document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]"))?.click();

/**
 * Listen to the keyboard. Returns a function that ends it.
 * @param {{enabled: () => boolean, help: () => void, palette: () => void}} actions
 */
export function listen({ enabled, help, palette }) {
  let waits = false;
  /** @type {Record<string, () => void>} */
  const plain = {
    "?": help,
    "/": () => document.getElementById("filter")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    x: select,
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      palette();
      return;
    }
    const target = /** @type {HTMLElement} */ (event.target);
    const typing = /^(input|select|textarea)$/i.test(target.tagName) && /** @type {HTMLInputElement} */ (target).type !== "checkbox";
    if (!enabled() || typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const act = waits && PAGES[event.key] ? () => (location.hash = PAGES[event.key]) : plain[event.key];
    waits = event.key === "g";
    if (!act) return;
    event.preventDefault();
    act();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
