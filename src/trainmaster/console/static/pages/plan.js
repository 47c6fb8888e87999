// The page Plan a job: a form or a pasted request, and what would follow from it, live while typing. Nothing is stored.

import { change } from "../lib/api.js";
import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { jobHash, readPath } from "../lib/route.js";
import { clock } from "../lib/time.js";
import { Empty, JobLink } from "../parts/small.js";
import { creationText, delayText, details, fieldOf, formOf, priceText, requestIn, requestOf, verdict } from "../views/plan.js";

/** @typedef {import("../views/plan.js").Plan} Plan */
/** @typedef {import("../views/plan.js").Form} Form */
/** @typedef {{message: string, hint: string | null, field: string | null}} Problem */

const PAUSE = 350;
/** Fields in their order: name, label, type of input, hint. */
const FIELDS = [
  ["type", "Instance type", "text", ""],
  ["resources", "or resources of each instance", "text", "accelerators=8+vcpus=96"],
  ["count", "Instances", "number", ""],
  ["priority", "Priority", "number", "0"],
  ["share", "Share", "text", "default"],
  ["hours", "Time limit in hours", "number", ""],
  ["min", "Smallest size, if elastic", "number", ""],
  ["max", "Largest size", "number", ""],
  ["notBefore", "Not before", "text", "2026-12-01T08:00:00Z"],
  ["name", "Name", "text", ""],
];

export const title = () => "Plan a job";
export const reads = () => [readPath("/pools"), readPath("/jobs", { limit: 100 })];

/** @param {{values: any[], now: number, readOnly: boolean, announce: (text: string) => void}} props */
export function View({ values: [{ pools }, { jobs }], now, readOnly, announce }) {
  const [form, setForm] = useState(/** @type {Form} */ ({ type: pools.find((/** @type {any} */ each) => each.instanceType)?.instanceType ?? "", count: "1", hours: "24" }));
  const [pasted, setPasted] = useState("");
  const { base, wrong } = useMemo(() => parsed(pasted), [pasted]);
  const request = useMemo(() => requestOf(form, base), [form, base]);
  const { plan, problem, busy } = usePlan(request, wrong === "");
  const at = problem ? fieldOf(problem.field, request) : "";
  const set = (/** @type {string} */ name, /** @type {string} */ value) => setForm((before) => ({ ...before, [name]: value, ...(name === "resources" && value ? { type: "" } : {}), ...(name === "type" && value ? { resources: "" } : {}) }));
  const onPaste = (/** @type {string} */ text) => {
    setPasted(text);
    const { base: found } = parsed(text);
    if (found) setForm(formOf(found));
  };
  const lists = { type: [...new Set(pools.map((/** @type {any} */ pool) => pool.instanceType).filter(Boolean))], share: [...new Set(jobs.map((/** @type {any} */ job) => job.share))] };
  return html`
    <header class="headline compact"><h1>Plan a job</h1><p class="lead">See what would happen if you submitted it now. Nothing is stored until you submit.</p></header>
    <div class="plan">
      <section aria-labelledby="request"><h2 id="request">Request</h2>
        <div class="plan-form">${FIELDS.map(([name, label, type, hint]) => html`<${Field} key=${name} ...${{ name, label, type, hint }} value=${form[name] ?? ""}
          list=${/** @type {Record<string, unknown[]>} */ (lists)[name]} problem=${at === name ? problem : null} onValue=${(/** @type {string} */ value) => set(name, value)} />`)}</div>
        <label class="field">Or paste a CreateTrainingJob request
          <textarea class="draft" rows="8" spellcheck="false" value=${pasted} placeholder='{"TrainingJobName": …}' aria-invalid=${wrong ? "true" : undefined} aria-describedby=${wrong || (problem && !at) ? "plan-problem" : undefined}
            onInput=${(/** @type {any} */ event) => onPaste(event.target.value)} /></label>
        ${(wrong || (problem && !at)) && html`<p class="problem" id="plan-problem" role="alert">${wrong || [problem?.message, problem?.hint].filter(Boolean).join(" ")}</p>`}
        <details><summary>The request that is planned</summary><pre tabindex="0">${JSON.stringify(request, null, 2)}</pre></details>
      </section>
      <section class=${busy ? "plan-answer busy" : "plan-answer"} aria-labelledby="answer" aria-busy=${busy}>
        <h2 id="answer">If you submitted it now</h2>
        ${plan ? html`<${Answer} plan=${plan} now=${now} own=${request.TrainingJobName} price=${priceText(plan, request, pools)} />` : html`<${Empty}>${problem || wrong ? "The request is not valid yet." : "Asking the queue …"}<//>`}
        <${Submit} ...${{ request, readOnly, announce }} ready=${Boolean(base && plan && !busy)} pasted=${Boolean(base)} />
      </section>
    </div>`;
}

/** @param {string} text @returns {{base: Record<string, any> | null, wrong: string}} */
function parsed(text) {
  try {
    return { base: requestIn(text), wrong: "" };
  } catch (error) {
    return { base: null, wrong: /** @type {Error} */ (error).message };
  }
}

/**
 * Return the newest plan of a request, asked for when it has not changed for a while.
 * @param {Record<string, any>} request @param {boolean} valid
 */
function usePlan(request, valid) {
  const [state, setState] = useState({ plan: /** @type {Plan | null} */ (null), problem: /** @type {Problem | null} */ (null), busy: true });
  const asked = useRef(0);
  const text = JSON.stringify(request);
  useEffect(() => {
    const number = ++asked.current;
    const tell = (/** @type {any} */ news) => { if (number === asked.current) setState(news); };
    if (!valid) return tell({ plan: null, problem: null, busy: false });
    setState((before) => ({ ...before, busy: true }));
    const timer = setTimeout(() => change("POST", "/plan", request).then(
      (plan) => tell({ plan, problem: null, busy: false }),
      (problem) => tell({ plan: null, problem, busy: false }),
    ), PAUSE);
    return () => clearTimeout(timer);
  }, [text, valid]);
  return state;
}

/** @param {{name: string, label: string, type: string, hint: string, value: string, list?: string[], problem: Problem | null, onValue: (value: string) => void}} props */
const Field = ({ name, label, type, hint, value, list, problem, onValue }) => html`<label class="field">${label}
  <input id=${`plan-${name}`} type="text" inputmode=${type === "number" ? "decimal" : undefined} value=${value} placeholder=${hint} list=${list ? `list-${name}` : undefined} autocomplete="off" spellcheck="false"
    aria-invalid=${problem ? "true" : undefined} aria-describedby=${problem ? `wrong-${name}` : undefined} onInput=${(/** @type {any} */ event) => onValue(event.target.value)} />
  ${list && html`<datalist id=${`list-${name}`}>${list.map((each) => html`<option key=${each} value=${each} />`)}</datalist>`}
  ${problem && html`<span class="problem" id=${`wrong-${name}`} role="alert">${[problem.message, problem.hint].filter(Boolean).join(" ")}</span>`}</label>`;

/** @param {{plan: Plan, now: number, own: string, price: string}} props */
function Answer({ plan, now, own, price }) {
  const others = plan.wouldStart.filter((name) => name !== own);
  return html`
  <p class=${`verdict ${plan.decision}`}>${verdict(plan, now)}</p>
  ${details(plan, now).map((text) => html`<p key=${text}>${text}</p>`)}
  ${price && html`<p class="muted">${price}</p>`}
  ${plan.wouldPreempt.length > 0 && html`<h3>Would step aside</h3><ul>${plan.wouldPreempt.map((name) => html`<li key=${name}><${JobLink} name=${name} /> <span class="muted">is preempted and resumes later</span></li>`)}</ul>`}
  ${others.length > 0 && html`<h3>Would start with it</h3><ul>${others.map((name) => html`<li key=${name}><${JobLink} name=${name} /></li>`)}</ul>`}
  ${plan.wouldDelay.length > 0 && html`<h3>Would start later</h3><div class="table"><table aria-label="Delays">
    <thead><tr><th scope="col">Job</th><th scope="col">Delay</th><th scope="col">Expected start</th><th scope="col">Then</th></tr></thead>
    <tbody>${plan.wouldDelay.map((each) => html`<tr key=${each.jobName}><th scope="row"><${JobLink} name=${each.jobName} row /></th><td>${delayText(each)}</td><td>${clock(each.expectedStart, now)}</td><td>${clock(each.wouldStart, now)}</td></tr>`)}</tbody></table></div>`}
  ${plan.wouldCreate.length > 0 && html`<h3>Pools that would be made</h3><ul>${plan.wouldCreate.map((each) => html`<li key=${each.pool}>${creationText(each)}</li>`)}</ul>`}
  ${plan.wouldCreateNone && html`<p class="muted">${plan.wouldCreateNone}</p>`}
  ${plan.warnings.length > 0 && html`<h3>Note</h3><ul>${plan.warnings.map((text) => html`<li key=${text} class="warn">${text}</li>`)}</ul>`}`;
}

/** @param {{request: Record<string, any>, ready: boolean, pasted: boolean, readOnly: boolean, announce: (text: string) => void}} props */
function Submit({ request, ready, pasted, readOnly, announce }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    try {
      const { jobName } = await change("POST", "/add-job", request);
      announce(`${jobName} is in the queue.`);
      location.hash = jobHash(jobName);
    } catch (error) {
      const { message, hint } = /** @type {Error & {hint: string | null}} */ (error);
      setProblem([message, hint].filter(Boolean).join(" "));
      setBusy(false);
    }
  };
  const why = readOnly ? "The console was started with --read-only." : pasted ? "" : "Paste a request to submit it: the form alone has no image, role and output.";
  return html`<div class="plan-submit">${why && html`<span class="muted">${why}</span>`}
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
    <button type="button" class="solid" disabled=${!ready || readOnly || busy} onClick=${send}>Submit ${pasted ? request.TrainingJobName : ""}</button></div>`;
}
