/**
 * A run as one HTML file that needs nothing else: for who has to keep it. No scripts, nothing loaded, all texts escaped; the quads
 * and the proof are in it, so that what it says can be checked without the server.
 */

import { count, duration, exact, tokens, who } from '../../lib/format';
import { citeWords, type Cite } from '../../lib/cites';
import { parseMarkdown, type Block, type Inline } from '../../lib/markdown';
import { stateLook } from '../../lib/states';
import type { DurableEvent, OptionSet, WholeRun } from '../../lib/types';
import { layout } from './lanes';
import { logLines } from './log';
import { citedStep, type RunModel, type Step } from './model';
import type { TraceIndex } from './trace';
import { decider, decisionWords, enforcementWords, kindLook, outcomeWord, sourceOf } from './words';
import { basisSentence, verdict } from './verdict';

export const escape = (text: unknown): string =>
  String(text ?? '').replace(/[&<>"']/g, (letter) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[letter]!);

/** Where in the file stands what a citation names. */
type At = (cite: Cite) => string | null;

const inline = (parts: readonly Inline[], at: At): string =>
  parts.map((part) => {
    switch (part.kind) {
      case 'text': return escape(part.text);
      case 'code': return `<code>${escape(part.text)}</code>`;
      case 'strong': case 'em': return `<${part.kind}>${inline(part.inner, at)}</${part.kind}>`;
      case 'strike': return `<s>${inline(part.inner, at)}</s>`;
      case 'link': return `${inline(part.inner, at)} <span class="muted">(${escape(part.href)})</span>`;
      case 'image': return `[image not loaded: ${escape(part.alt)}]`;
      case 'cite': return part.cites.map((cite) => { const where = at(cite); return where ? `<a class="cite" href="#${where}">[${escape(citeWords(cite))}]</a>` : `[${escape(citeWords(cite))}]`; }).join('');
      case 'break': return '<br>';
    }
  }).join('');

const blocks = (list: readonly Block[], at: At): string =>
  list.map((block) => {
    switch (block.kind) {
      case 'heading': { const tag = `h${Math.min(6, block.level + 2)}`; return `<${tag}>${inline(block.inner, at)}</${tag}>`; }
      case 'paragraph': return `<p>${inline(block.inner, at)}</p>`;
      case 'code': return `<pre>${escape(block.text)}</pre>`;
      case 'quote': return `<blockquote>${blocks(block.blocks, at)}</blockquote>`;
      case 'list': { const tag = block.ordered ? 'ol' : 'ul'; return `<${tag}>${block.items.map((item) => `<li>${blocks(item, at)}</li>`).join('')}</${tag}>`; }
      case 'table': return `<table><tr>${block.head.map((cell) => `<th>${inline(cell, at)}</th>`).join('')}</tr>${block.rows.map((row) => `<tr>${row.map((cell) => `<td>${inline(cell, at)}</td>`).join('')}</tr>`).join('')}</table>`;
      case 'rule': return '<hr>';
    }
  }).join('\n');

const place = (step: Step): string => `s${step.events[0]!.seq}`;

function decision(step: Step, set: OptionSet, rejected: string | null): string {
  const free = set.options.length === 0;
  const options = free
    ? set.chosen.map((one) => `<li class="chosen">${escape(one)}</li>`).join('')
    : set.options.map((one) => (set.chosen.includes(one) ? `<li class="chosen">&#9679; ${escape(one)} <b>chosen</b></li>` : `<li>&#9675; ${escape(one)}</li>`)).join('');
  const excluded = set.excluded.map((one) => `<li><s>${escape(one.id)}</s> not offered: ${escape(one.why_excluded)}</li>`).join('');
  return `<div class="decision"><h4>${escape(decisionWords[set.decision] ?? set.decision)}</h4>
<p class="muted">Options from ${escape(sourceOf(set.source).words)}, configuration version ${escape(set.config_version ?? 'not recorded')}. Decided by ${escape(decider(step, set).word)}; ${escape(enforcementWords[set.enforcement]?.word ?? set.enforcement)}.</p>
<ul class="options">${options}${excluded}</ul>${set.rationale ? `<p>Stated reason (a claim, not checked): <q>${escape(set.rationale)}</q></p>` : ''}${rejected ? `<p class="error">The reply was outside the set, and not acted on:</p><pre>${escape(rejected)}</pre>` : ''}</div>`;
}

function stepText(model: RunModel, step: Step, trace: TraceIndex | null): string {
  const ids = step.events.map((event) => event.step_id);
  const failures = ids.flatMap((id) => trace?.of(id)?.cost?.failed_attempts ?? []);
  const agent = step.session === model.root ? '' : ` · ${escape(model.lanes.get(step.session)?.name)}`;
  return `<section id="${place(step)}" class="step ${step.outcome}"><h3>${escape(step.title)} <small>${escape(kindLook[step.kind].word)}${agent} · ${outcomeWord[step.outcome]} · ${duration(step.end - step.start)} · ${escape(tokens(step.inToken, step.outToken))}</small></h3>
<p class="muted id">${escape(step.id)}</p>
${step.error ? `<p class="error">${escape(step.error)}</p>` : ''}${step.optionSets.map((set) => decision(step, set, trace?.rejected(ids, set.decision) ?? null)).join('')}
${failures.length > 0 ? `<h4>Calls that brought no reply</h4><ul>${failures.map((failure) => `<li>${escape(failure)}</li>`).join('')}</ul>` : ''}
${step.thought ? `<h4>Thought (the model’s words)</h4><pre>${escape(step.thought)}</pre>` : ''}
${step.input === undefined || step.input === null ? '' : `<h4>In</h4><pre>${escape(typeof step.input === 'string' ? step.input : JSON.stringify(step.input, null, 2))}</pre>`}
${step.output ? `<h4>Out</h4><pre>${escape(step.output)}</pre>` : ''}</section>`;
}

/** The graph as a drawing; the cards lead to their steps. */
function drawing(model: RunModel): string {
  const picture = layout(model, () => false);
  const cards = picture.cards.filter((card) => !card.head).map(({ id, x, y, width, height }) => {
    const step = model.byId.get(id)!;
    const line = (text: string, most: number): string => escape(text.length > most ? `${text.slice(0, most - 1)}…` : text);
    return `<a href="#${place(step)}"><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="7" class="${step.outcome}"/><text x="${x + 12}" y="${y + 19}" class="t">${line(step.title, 22)}</text><text x="${x + 12}" y="${y + 37}">${line((step.error || step.line).slice(0, 300).replace(/[#*`_|\s]+/g, ' ').trim(), 25)}</text><text x="${x + 12}" y="${y + 55}" class="m">${step.outcome === 'ok' ? '' : `${outcomeWord[step.outcome]} · `}${step.end > step.start ? duration(step.end - step.start) : ''}</text></a>`;
  });
  const bands = picture.bands.map((band) => `<rect x="${band.x}" y="${band.y}" width="${band.width}" height="${band.height}" rx="9" class="band"/><text x="${band.x + 12}" y="${band.y + 26}" class="t">${escape(model.lanes.get(band.session)?.name)}</text>`);
  return `<svg viewBox="-4 -4 ${picture.width + 8} ${picture.height + 8}" width="${Math.min(1400, picture.width + 8)}" role="img" aria-label="The steps and what they follow from; the list below tells the same"><defs><marker id="a" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0.5 8 4 0 7.5z"/></marker></defs>${bands.join('')}${picture.edges.map((edge) => `<path d="${edge.path}" marker-end="url(#a)"/>`).join('')}${cards.join('')}</svg>`;
}

const STYLE = `body{font:14px/1.5 system-ui,sans-serif;color:#161a20;max-width:1100px;margin:24px auto;padding:0 20px;overflow-wrap:anywhere}
h1{font-size:22px}h2{font-size:18px;margin-top:36px;border-bottom:1px solid #ccd3db;padding-bottom:4px}h3{font-size:15px;margin-bottom:2px}h3 small{font-weight:400;color:#4a5360}h4{margin:10px 0 2px;font-size:13px}
pre{white-space:pre-wrap;background:#f6f7f9;border:1px solid #dde2e8;border-radius:5px;padding:8px 10px;margin:4px 0;font-size:12px}.muted{color:#4a5360}.id{font:11px monospace;margin:0}
.verdict{padding:10px 14px;border:1px solid #7d8794;border-radius:7px;font-weight:600}.decision{border-inline-start:3px solid #7046c9;padding-inline-start:12px;margin:8px 0}
.options{list-style:none;padding:0}.options .chosen{font-weight:600;color:#0b6b55}.error{color:#b3192b;font-weight:600}.step{border-top:1px solid #dde2e8;padding:6px 0;break-inside:avoid}
table{border-collapse:collapse}td,th{border:1px solid #dde2e8;padding:4px 8px;text-align:start;vertical-align:top}dt{color:#4a5360;float:inline-start;clear:inline-start;width:150px}dd{margin-inline-start:160px}.cite{color:#0b6b55}
svg{max-width:100%;height:auto}svg rect{fill:#fff;stroke:#7d8794}svg rect.failed{fill:#fdeaec;stroke:#b3192b;stroke-dasharray:5 3}svg rect.band{fill:#f1f3f6;stroke:#dde2e8}svg path{fill:none;stroke:#7d8794}svg .tip{fill:#7d8794;stroke:none}svg text{font:12px system-ui,sans-serif;fill:#4a5360}svg .t{font-weight:650;fill:#161a20}svg .m{font-size:11px}
@media print{.step{break-inside:avoid}details{display:block}}`;

export function report(model: RunModel, run: WholeRun, events: readonly DurableEvent[], quads: string, evidence: unknown, trace: TraceIndex | null): string {
  const found = verdict(model, run);
  const end = model.steps.findLast((step) => step.session === model.root);
  const at: At = (cite) => {
    const step = end && citedStep(model, end, cite);
    return step ? place(step) : null;
  };
  const facts: [string, string][] = [
    ['State', stateLook(run.state).word], ['Asked', `${exact(run.started)} (${run.started})`], ['Who asked', who(run.asked_by)], ['Took', duration(run.ms)],
    ['Tokens', tokens(run.in_token, run.out_token)], ['Model', run.model ?? 'not recorded'], ['Task type', run.task_type || 'not chosen'], ['Pattern', run.pattern || 'not chosen'],
    ['Configuration', run.configured ? `version ${run.configured.version}, made ${exact(run.configured.time)} ${who(run.configured.by)}` : 'not recorded'],
    ['Run', run.run_id], ['Workspace', run.workspace ?? 'not recorded'], ['Events', count(events.length)],
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><meta name="viewport" content="width=device-width"><title>${escape(run.question.slice(0, 120))} · Trellis run ${escape(run.run_id)}</title><style>${STYLE}</style></head><body>
<h1>${escape(run.question)}</h1><p class="verdict">${escape(found.sentence)}</p>
<dl>${facts.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`).join('')}</dl>
<h2>Answer</h2>${run.answer ? blocks(parseMarkdown(run.answer), at) : `<p class="error">${escape(run.error ?? 'There is no answer.')}</p>`}
${end ? `<p class="muted">Rests on ${escape(basisSentence(model, end.id))}.</p>` : ''}
<h2>What came from what</h2>${drawing(model)}
<h2>Steps, with every decision and its options</h2>${model.steps.map((step) => stepText(model, step, trace)).join('\n')}
<h2>Log</h2><table><tr><th>No.</th><th>After</th><th>Kind</th><th>What</th></tr>${logLines(model, events).map((line) => `<tr><td>${line.seq}</td><td>${duration(line.ms)}</td><td>${escape(line.kind)}</td><td>${line.agent ? `<b>${escape(line.agent)}:</b> ` : ''}${escape(line.text)}</td></tr>`).join('')}</table>
<h2>Proof</h2><p class="muted">The hashes that tie the records into the server’s log. <code>trellis verify</code> holds a run against them.</p><details><summary>Evidence</summary><pre>${escape(JSON.stringify(evidence, null, 2))}</pre></details>
<h2>Quads</h2><details><summary>${count(quads.split('\n').filter(Boolean).length)} quads (PROV-O, N-Quads)</summary><pre>${escape(quads)}</pre></details>
</body></html>
`;
}
