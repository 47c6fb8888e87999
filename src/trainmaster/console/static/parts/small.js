// Small components that every page uses.

import { html, useEffect, useRef, useState } from "../lib/html.js";
import { jobHash } from "../lib/route.js";
import { moment, utc } from "../lib/time.js";
import { stateOf } from "../lib/words.js";
import { tints } from "../views/scale.js";

/** A time in words, in UTC on hover. @param {{at: string | null, now: number, show?: (iso: string, now: number) => string}} props */
export const Time = ({ at, now, show = moment }) => (at ? html`<time datetime=${at} title=${utc(at)}>${show(at, now)}</time>` : "–");

/** A state with its mark; `brief` shows the mark alone. @param {{state: string, brief?: boolean}} props */
export const State = ({ state, brief }) => {
  const { label, mark, tone } = stateOf(state);
  return html`<span class=${`state ${tone}`}><span aria-hidden="true" class="mark">${mark}</span><span class=${brief ? "hidden" : ""}>${label}</span></span>`;
};

/** @param {{name: string, row?: boolean}} props */
export const JobLink = ({ name, row }) => html`<a class="job" href=${jobHash(name)} data-row=${row ? "" : undefined}>${name}</a>`;

/** A share with its color. @param {{share: string}} props */
export const Share = ({ share }) =>
  html`<span class="share"><svg class="dot" viewBox="0 0 8 8" aria-hidden="true"><rect width="8" height="8" rx="2" class=${tint(share)} /></svg>${share}</span>`;

const tintOf = tints();

/** Return the class of a share's color. @param {string} share */
export const tint = (share) => `tint${tintOf(share)}`;

/** A dialog over the page; Escape closes it. @param {{title: string, onClose: () => void, children?: any, wide?: boolean}} props */
export function Dialog({ title, onClose, children, wide }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = element.current;
    const closed = () => onClose();
    dialog?.addEventListener("close", closed);
    dialog?.showModal();
    /** @type {HTMLElement | null | undefined} */ (dialog?.querySelector("input, button.solid"))?.focus();
    return () => {
      dialog?.removeEventListener("close", closed); // the event comes late, when another dialog may be open
      dialog?.close();
    };
  }, []);
  return html`<dialog ref=${element} class=${wide ? "wide" : ""} aria-labelledby="dialog-title">
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`;
}

/** @param {{children?: any}} props */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

const TYPING = 400;

/**
 * A field of a filter that the server applies; it is sent when typing pauses.
 * @param {{label: string, value: string, onValue: (value: string) => void, id?: string}} props
 */
export function TextFilter({ label, value, onValue, id }) {
  const element = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [text, setText] = useState(value);
  useEffect(() => { if (document.activeElement !== element.current) setText(value); }, [value]);
  useEffect(() => {
    const timer = text.trim() === value ? 0 : setTimeout(() => onValue(text.trim()), TYPING);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label>${label}<input ref=${element} id=${id} type="search" value=${text} autocomplete="off" spellcheck=${false}
    onInput=${(/** @type {any} */ event) => setText(event.target.value)} /></label>`;
}
