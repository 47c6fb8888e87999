// The page Settings: the document with help from the API's schema, and what a draft changes before it is saved.

import { apiDocument, change, read } from "../lib/api.js";
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { hashOf } from "../lib/route.js";
import { clock } from "../lib/time.js";
import { counted, listed, person } from "../lib/words.js";
import { Replay } from "../parts/replay.js";
import { Dialog } from "../parts/small.js";
import { applied, changesBetween, collisions, helpOf, offsetOf, parsed, pathAt, pathText, problemsOf, reference, settingsOf, textOf, valueText } from "../views/settings.js";

/** @typedef {import("../views/settings.js").Change} Change */
/** @typedef {import("../views/settings.js").Schema} Schema */

export const title = () => "Settings";
export const reads = () => ["/settings"];

/** The draft: the settings that it began with, and its text; it stays while other pages are shown. */
/** @type {{base: any, text: string} | null} */
let kept = null;

/** @param {{values: any[], now: number, route: import("../lib/types.js").Route, readOnly: boolean, announce: (text: string) => void}} props */
export function View({ values: [live], now, route, readOnly, announce }) {
  const [draft, setDraft] = useState(kept ?? { base: live, text: textOf(settingsOf(live)) });
  const [known, setKnown] = useState(/** @type {Schema} */ ({}));
  const [caret, setCaret] = useState(0);
  const [reviewing, setReviewing] = useState(false);
  useEffect(() => { apiDocument().then(({ components }) => setKnown(components.schemas), () => undefined); }, []);
  const editor = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => {
    const at = route.query.at ? offsetOf(draft.text, route.query.at) : 0;
    if (at) reveal(/** @type {HTMLTextAreaElement} */ (editor.current), at);
    setCaret(at);
  }, [route.query.at]);
  const keepDraft = (/** @type {{base: any, text: string}} */ next) => { kept = next; setDraft(next); };
  const restart = (/** @type {any} */ answer) => { kept = null; setDraft({ base: answer, text: textOf(settingsOf(answer)) }); };

  const { base, text } = draft;
  const { value, problem } = parsed(text);
  const mine = value ? changesBetween(settingsOf(base), value) : [];
  const theirs = live.version > base.version ? changesBetween(settingsOf(base), settingsOf(live)) : [];
  const isClean = !problem && !mine.length;
  useEffect(() => {
    if (live.version <= base.version) return;
    if (isClean) restart(live);
    else if (!theirs.length) keepDraft({ base: live, text });
  }, [live.version]);
  const problems = value && known.Settings ? problemsOf(known, value) : [];
  const isSaved = (/** @type {any} */ answer) => {
    setReviewing(false);
    restart(answer);
    announce(`Version ${answer.version} of the settings is in force.`);
  };
  return html`
    <header class="headline compact"><h1>Settings</h1>
      <p class="lead">Version ${live.version} is in force. ${problem ? "The draft is no JSON yet." : isClean ? "The draft has no changes." : `The draft changes ${counted(mine.length, "setting")}.`}</p></header>
    ${theirs.length > 0 && !isClean && html`<${Meanwhile} ...${{ base, live, mine, theirs, now }} broken=${Boolean(problem)}
      onApply=${() => keepDraft({ base: live, text: textOf(applied(settingsOf(live), mine)) })} onDiscard=${() => restart(live)} />`}
    <section class="settings" aria-labelledby="document">
      <div class="settings-text">
        <div class="section-head"><h2 id="document">Document</h2><span class="muted">durations are seconds; what a document omits has its default</span></div>
        <textarea ref=${editor} id="draft" class="draft" spellcheck=${false} aria-labelledby="document" aria-describedby="draft-problems" aria-invalid=${problem || problems.length ? "true" : "false"} value=${text}
          onInput=${(/** @type {any} */ event) => keepDraft({ base, text: event.target.value })}
          onKeyUp=${(/** @type {any} */ event) => setCaret(event.target.selectionStart)} onClick=${(/** @type {any} */ event) => setCaret(event.target.selectionStart)}></textarea>
        <ul id="draft-problems" class="problems">${problem && html`<li class="bad">${problem}</li>`}
          ${problems.slice(0, 5).map((each) => html`<li key=${pathText(each.path)} class="bad"><code>${pathText(each.path)}</code> ${each.message}.</li>`)}</ul>
        <div class="buttons">
          <button type="button" disabled=${text === textOf(settingsOf(base))} onClick=${() => restart(live)}>Discard the draft</button>
          <button type="button" class="solid" disabled=${readOnly || Boolean(problem) || !mine.length} title=${readOnly ? "The console was started with --read-only." : ""}
            onClick=${() => setReviewing(true)}>Review and save…</button>
        </div>
      </div>
      <${Aside} schemas=${known} path=${pathAt(text, caret)} mine=${mine} />
    </section>
    <${Replay} draft=${value} now=${now} problem=${problem ? "The draft is no JSON yet." : isClean ? "Change a setting of the draft first." : ""} />
    <${Reference} schemas=${known} />
    ${reviewing && html`<${Review} ...${{ base, value, mine, known }} onClose=${() => setReviewing(false)} onSaved=${isSaved} />`}`;
}

/** Place the cursor, and scroll its line into view. @param {HTMLTextAreaElement} element @param {number} at */
function reveal(element, at) {
  element.focus();
  element.setSelectionRange(at, at);
  const lines = element.value.split("\n").length;
  element.scrollTop = (element.scrollHeight * (element.value.slice(0, at).split("\n").length - 3)) / lines;
}

/** The member at the cursor, and the changes so far. @param {{schemas: Schema, path: (string | number)[], mine: Change[]}} props */
function Aside({ schemas: known, path, mine }) {
  const help = helpOf(known, path);
  return html`<aside class="settings-help" aria-label="Help for the draft">
    <h2>At the cursor</h2>
    ${!help && html`<p class="empty">Place the cursor in a member to read what it does.</p>`}
    ${help && html`<div class="member"><h3>${help.name}</h3><p>${help.about}</p>
      <dl>${help.values && html`<div><dt>Allowed</dt><dd>${help.values}</dd></div>`}${help.standard && html`<div><dt>Default</dt><dd>${help.standard}</dd></div>`}</dl></div>`}
    <h2>Changes of the draft <span class="count">${mine.length}</span></h2>
    ${mine.length === 0 && html`<p class="empty">None.</p>`}
    <ul class="diff">${mine.slice(0, 12).map((each) => html`<${Line} key=${pathText(each.path)} change=${each} />`)}</ul>
    ${mine.length > 12 && html`<p class="muted">and ${mine.length - 12} more</p>`}
    <p class="muted"><a href=${hashOf("audit", { query: { action: "settings" } })}>Earlier changes in the audit log</a></p>
  </aside>`;
}

/** @param {{change: Change}} props */
const Line = ({ change: { path, before, after } }) => html`<li><code>${pathText(path)}</code>
  <span class="was"><span class="hidden">from </span><span aria-hidden="true">− </span>${valueText(before, path)}</span>
  <span class="becomes"><span class="hidden">to </span><span aria-hidden="true">+ </span>${valueText(after, path)}</span></li>`;

/**
 * What others saved since the draft began.
 * @param {{base: any, live: any, mine: Change[], theirs: Change[], now: number, broken: boolean, onApply: () => void, onDiscard: () => void}} props
 */
function Meanwhile({ base, live, mine, theirs, now, broken, onApply, onDiscard }) {
  const [entry, setEntry] = useState(/** @type {any} */ (null));
  useEffect(() => { read("/audit?action=settings&limit=1").then((page) => setEntry(page.entries[0] ?? null), () => undefined); }, [live.version]);
  const both = collisions(mine, theirs);
  return html`<section class="meanwhile" role="alert" aria-labelledby="meanwhile">
    <h2 id="meanwhile">Version ${live.version} was saved meanwhile${entry ? ` by ${person(entry.arn ?? entry.principal)} at ${clock(entry.at, now)}` : ""}</h2>
    <p>Your draft began with version ${base.version} and is kept. The new version changes ${counted(theirs.length, "setting")}:</p>
    <ul class="diff">${theirs.map((each) => html`<${Line} key=${pathText(each.path)} change=${each} />`)}</ul>
    ${both.length > 0 && html`<p class="warn">You changed ${listed(both)} too: yours would replace that.</p>`}
    <div class="buttons"><button type="button" onClick=${onDiscard}>Discard my draft</button>
      <button type="button" class="solid" disabled=${broken} onClick=${onApply}>Apply my changes to version ${live.version}</button></div>
  </section>`;
}

/**
 * The dialog that shows the changes before they are saved.
 * @param {{base: any, value: any, mine: Change[], known: Schema, onClose: () => void, onSaved: (answer: any) => void}} props
 */
function Review({ base, value, mine, known, onClose, onSaved }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      onSaved(await change("PUT", "/settings", { ...value, version: base.version }));
    } catch (error) {
      const { message, hint, type } = /** @type {Error & {hint: string | null, type: string}} */ (error);
      setBusy(false);
      setProblem(type === "VersionConflict" ? "Another person saved a version meanwhile. Your draft is kept: close this dialog to see what they changed." : [message, hint].filter(Boolean).join(" "));
    }
  };
  return html`<${Dialog} title=${`Save ${counted(mine.length, "change")} as a new version?`} onClose=${onClose} wide>
    <form method="dialog" onSubmit=${save}>
      <div class="table changes" tabindex="0" role="region" aria-label="Changes"><table>
        <thead><tr><th scope="col">Setting</th><th scope="col">Now</th><th scope="col">Then</th></tr></thead>
        <tbody>${mine.map((each) => html`<tr key=${pathText(each.path)}>
          <th scope="row"><code>${pathText(each.path)}</code><div class="muted about">${helpOf(known, each.path)?.about}</div></th>
          <td class="was">${valueText(each.before, each.path)}</td><td class="becomes">${valueText(each.after, each.path)}</td></tr>`)}</tbody>
      </table></div>
      <p class="muted">They hold from the next pass on, for waiting jobs too. Running jobs are not stopped by a save; later passes may preempt by the new rules.</p>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <div class="buttons"><button type="button" onClick=${onClose}>Back to the draft</button>
        <button type="submit" class="solid" disabled=${busy}>Save</button></div>
    </form>
  <//>`;
}

/** All settings with their meaning. @param {{schemas: Schema}} props */
function Reference({ schemas: known }) {
  if (!known.Settings) return null;
  return html`<section aria-labelledby="reference"><h2 id="reference">Reference</h2>
    <details><summary>All settings</summary><div class="table"><table aria-labelledby="reference">
      <thead><tr><th scope="col">Setting</th><th scope="col">Meaning</th><th scope="col">Allowed</th><th scope="col">Default</th></tr></thead>
      <tbody>${reference(known).map((each) => html`<tr key=${each.name}><th scope="row"><code>${each.name}</code></th><td>${each.about}</td><td class="muted">${each.values}</td><td>${each.standard}</td></tr>`)}</tbody>
    </table></div></details></section>`;
}
