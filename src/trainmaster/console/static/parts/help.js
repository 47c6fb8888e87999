// The help for the keyboard, and the palette that goes to a job by its name.

import { namesFrom } from "../lib/api.js";
import { html, useEffect, useState } from "../lib/html.js";
import { SHORTCUTS } from "../lib/keys.js";
import { jobHash } from "../lib/route.js";
import { Dialog } from "./small.js";

/** @param {{enabled: boolean, onEnabled: (on: boolean) => void, onClose: () => void}} props */
export const Help = ({ enabled, onEnabled, onClose }) => html`<${Dialog} title="Keyboard" onClose=${onClose}>
  <dl class="keys">
    ${SHORTCUTS.map(([keys, what]) => html`<div key=${keys}><dt>${keys.split(/ +/).map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${what}</dd></div>`)}
  </dl>
  <label class="check"><input type="checkbox" checked=${enabled} onChange=${(/** @type {any} */ event) => onEnabled(event.target.checked)} />
    Shortcuts of one letter</label>
  <div class="buttons"><button type="button" class="solid" onClick=${onClose}>Close</button></div>
<//>`;

/** @param {{names: string[], onClose: () => void}} props */
export function Palette({ names, onClose }) {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const [others, setOthers] = useState(/** @type {string[]} */ ([]));
  const near = names.filter((name) => name.toLowerCase().includes(wanted));
  const found = [...new Set([...near, ...(wanted ? others.filter((name) => name.startsWith(text.trim())) : [])])].slice(0, 8);
  useEffect(() => {
    if (!wanted) return;
    const asking = setTimeout(() => namesFrom(text.trim()).then(setOthers, () => setOthers([])), 200);
    return () => clearTimeout(asking);
  }, [wanted]);
  const open = (/** @type {string} */ name) => {
    onClose();
    location.hash = jobHash(name);
  };
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.trim() || found[0]) open(found.includes(text.trim()) || !found[0] ? text.trim() : found[0]);
  };
  return html`<${Dialog} title="Go to a job" onClose=${onClose}>
    <form onSubmit=${send}>
      <label class="field">Name
        <input type="text" autocomplete="off" spellcheck="false" value=${text}
          onInput=${(/** @type {any} */ event) => setText(event.target.value)} /></label>
      <ul class="choices">${found.map((name) => html`<li key=${name}><button type="button" class="plain job" onClick=${() => open(name)}>${name}</button></li>`)}</ul>
      <p class="muted">Enter opens the first one, or the job of exactly this name.</p>
    </form>
  <//>`;
}
