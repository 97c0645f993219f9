/**
 * Where the cards of a run stand: one column per agent in the order in which the agents were planned, rows by depth, each round of
 * agents a block of its own. The same run always gives the same picture, and a step that comes later never moves what is there
 * sideways past another.
 */

import type { Round, RunModel, Step } from './model';

/** So high that four agents with three calls each are seen whole, without scrolling, on 1,600 × 1,000 pixels. */
export const CARD = { width: 188, height: 64 };
const GAP = 20;
const ASIDE = 10;
const PADDING = 8;
const HEAD = 46;
const ROUND_HEAD = 26;
/** As many cards stand beside each other in one row. */
const IN_A_ROW = 5;
/** As many agents can be read side by side. */
export const READABLE = 6;

export interface Placed {
  id: string;
  x: number;
  y: number;
  width: number;
  height: number;
  /** It is the heading of its agent's column. */
  head: boolean;
}
export interface Band {
  session: string;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Only a summary stands in its place. */
  closed: boolean;
}
export interface Block {
  correlation: string;
  x: number;
  y: number;
  width: number;
  height: number;
  title: string;
  /** How deep in other agents; 0 for those of the run itself. */
  depth: number;
}
export interface Edge {
  from: string;
  to: string;
  path: string;
}
export interface Picture {
  cards: Placed[];
  bands: Band[];
  blocks: Block[];
  edges: Edge[];
  width: number;
  height: number;
}

interface Box {
  width: number;
  height: number;
  /** The x of its middle column. */
  axis: number;
  cards: Placed[];
  bands: Band[];
  blocks: Block[];
}

/** Which agents are shown as a summary only. */
export type IsClosed = (session: string, depth: number, siblings: number) => boolean;

/** As far as nothing else is wanted: agents of agents, and all where they are too many to be read side by side. */
export const usuallyClosed: IsClosed = (_, depth, siblings) => depth > 0 || siblings > READABLE;

export function layout(model: RunModel, isClosed: IsClosed = usuallyClosed): Picture {
  const rounds = new Map<string, Round[]>();
  for (const round of model.rounds) {
    const own = rounds.get(round.split);
    if (own) own.push(round);
    else rounds.set(round.split, [round]);
  }
  const seen = new Set<string>();
  const box = session(model, rounds, model.root, 0, isClosed, seen);
  const at = new Map(box.cards.map((card) => [card.id, card]));
  const bands = new Map(box.bands.map((band) => [band.session, band]));
  return {
    cards: box.cards, bands: box.bands, blocks: box.blocks, edges: edges(model, at, bands),
    width: box.width, height: box.height,
  };
}

function session(
  model: RunModel, rounds: Map<string, Round[]>, name: string, depth: number, isClosed: IsClosed, seen: Set<string>,
): Box {
  seen.add(name);
  const own = (model.lanes.get(name)?.steps ?? []).map((id) => model.byId.get(id)!).filter(Boolean);
  // The beginning of an agent is the heading of its column.
  const steps = own[0]?.kind === 'agent' ? own.slice(1) : own;
  const parts: Box[] = [];
  let segment: Step[] = [];
  const flush = (): void => {
    if (segment.length > 0) parts.push(column(segment));
    segment = [];
  };
  for (const step of steps) {
    segment.push(step);
    for (const round of rounds.get(step.id) ?? []) {
      flush();
      const inside = round.sessions.filter((one) => !seen.has(one) && model.lanes.has(one));
      if (inside.length > 0) parts.push(block(model, rounds, round, inside, depth, isClosed, seen));
    }
  }
  flush();
  return stack(parts);
}

/** Cards of one agent: a row for each depth, in recorded order within the row. */
function column(steps: Step[]): Box {
  const depths = new Map<string, number>();
  const rows: Step[][] = [];
  for (const step of steps) {
    const above = step.parents.map((id) => depths.get(id)).filter((depth): depth is number => depth !== undefined);
    const depth = above.length > 0 ? Math.max(...above) + 1 : rows.length === 0 ? 0 : step.parents.length === 0 ? rows.length : 0;
    depths.set(step.id, depth);
    (rows[depth] ??= []).push(step);
  }
  const lines = rows.filter(Boolean).flatMap((row) => {
    const sorted = [...row].sort((a, b) => numberOf(a) - numberOf(b));
    const cut: Step[][] = [];
    for (let place = 0; place < sorted.length; place += IN_A_ROW) cut.push(sorted.slice(place, place + IN_A_ROW));
    return cut;
  });
  const widest = Math.max(1, ...lines.map((line) => line.length));
  const width = widest * CARD.width + (widest - 1) * ASIDE;
  const cards: Placed[] = [];
  lines.forEach((line, place) => {
    const own = line.length * CARD.width + (line.length - 1) * ASIDE;
    line.forEach((step, number) => {
      const [x, y] = [(width - own) / 2 + number * (CARD.width + ASIDE), place * (CARD.height + GAP)];
      cards.push({ id: step.id, x, y, ...CARD, head: false });
    });
  });
  return { width, height: lines.length * (CARD.height + GAP) - GAP, axis: width / 2, cards, bands: [], blocks: [] };
}

/** Steps of a plan have numbers; all others stay as they were recorded. */
function numberOf(step: Step): number {
  return Number(/\/step\/(\d+)(?:\/|$)/.exec(step.id)?.[1] ?? 0);
}

/** The agents of a round, side by side. */
function block(
  model: RunModel, rounds: Map<string, Round[]>, round: Round, sessions: string[], depth: number, isClosed: IsClosed, seen: Set<string>,
): Box {
  const all = model.rounds.filter((one) => one.parent === round.parent).length;
  const title = all > 1 ? `Round ${round.round} of ${all}` : '';
  const head = title ? ROUND_HEAD : 0;
  const result: Box = { width: 0, height: 0, axis: 0, cards: [], bands: [], blocks: [] };
  let x = 0;
  let tallest = 0;
  const own: Band[] = [];
  for (const name of sessions) {
    const closed = isClosed(name, depth, sessions.length);
    const first = model.byId.get(model.lanes.get(name)?.steps[0] ?? '');
    const inner: Box = closed
      ? { width: CARD.width, height: CARD.height, axis: CARD.width / 2, cards: [], bands: [], blocks: [] }
      : session(model, rounds, name, depth + 1, isClosed, seen);
    const width = Math.max(inner.width, CARD.width) + 2 * PADDING;
    move(inner, x + (width - inner.width) / 2, head + HEAD + PADDING);
    take(result, inner);
    if (first?.kind === 'agent') result.cards.push({ id: first.id, x, y: head, width, height: HEAD, head: true });
    own.push({ session: name, x, y: head, width, height: HEAD + inner.height + 2 * PADDING, closed });
    tallest = Math.max(tallest, HEAD + inner.height + 2 * PADDING);
    x += width + ASIDE;
  }
  for (const band of own) band.height = tallest;
  result.bands.unshift(...own);
  result.width = x - ASIDE;
  result.height = head + tallest;
  result.axis = result.width / 2;
  result.blocks.unshift({ correlation: round.correlation, x: 0, y: 0, width: result.width, height: result.height, title, depth });
  return result;
}

/** Boxes one below the other, with their middles in line. */
function stack(parts: Box[]): Box {
  const left = Math.max(0, ...parts.map((part) => part.axis));
  const right = Math.max(0, ...parts.map((part) => part.width - part.axis));
  const result: Box = { width: left + right, height: 0, axis: left, cards: [], bands: [], blocks: [] };
  parts.forEach((part, place) => {
    const y = place === 0 ? 0 : result.height + GAP;
    move(part, left - part.axis, y);
    take(result, part);
    result.height = y + part.height;
  });
  return result;
}

function move(box: Box, x: number, y: number): void {
  for (const list of [box.cards, box.bands, box.blocks]) {
    for (const one of list) {
      one.x += x;
      one.y += y;
    }
  }
}

function take(into: Box, from: Box): void {
  for (const card of from.cards) into.cards.push(card);
  for (const band of from.bands) into.bands.push(band);
  for (const block of from.blocks) into.blocks.push(block);
}

function edges(model: RunModel, at: Map<string, Placed>, bands: Map<string, Band>): Edge[] {
  /** The card of a step, or the summary of the agent that it is hidden in. */
  const place = (id: string): { x: number; top: number; bottom: number; name: string } | null => {
    const card = at.get(id);
    if (card?.head) {
      const band = bands.get(model.byId.get(id)!.session)!;
      return { x: card.x + card.width / 2, top: card.y, bottom: band.closed ? band.y + band.height : card.y + card.height, name: band.closed ? `lane ${band.session}` : id };
    }
    if (card) return { x: card.x + card.width / 2, top: card.y, bottom: card.y + card.height, name: id };
    for (let name: string | null = model.byId.get(id)?.session ?? null; name !== null; name = model.lanes.get(name)?.parent ?? null) {
      const band = bands.get(name);
      if (band?.closed) return { x: band.x + band.width / 2, top: band.y, bottom: band.y + band.height, name: `lane ${name}` };
    }
    return null;
  };
  const found = new Map<string, Edge>();
  for (const step of model.steps) {
    const to = place(step.id);
    if (!to) continue;
    for (const parent of step.parents) {
      // Below its heading the first card of a column needs no line.
      if (at.get(parent)?.head && model.byId.get(parent)!.session === step.session) continue;
      const from = place(parent);
      if (!from || from.name === to.name) continue;
      const key = `${from.name}>${to.name}`;
      if (!found.has(key)) found.set(key, { from: parent, to: step.id, path: elbow(from.x, from.bottom, to.x, to.top) });
    }
  }
  return [...found.values()];
}

/** Down, across close to the end, and down again. */
function elbow(x1: number, y1: number, x2: number, y2: number): string {
  const round = (value: number): number => Math.round(value * 2) / 2;
  const end = y2 - 5;
  if (Math.abs(x1 - x2) < 1) return `M${round(x1)} ${round(y1)}V${round(end)}`;
  // The last stretch is long enough to point the tip down.
  const turn = (y2 > y1 + 2 * GAP ? y2 - GAP / 2 : (y1 + y2) / 2) - 2;
  const radius = Math.min(5, Math.abs(x2 - x1) / 2);
  const aside = Math.sign(x2 - x1) * radius;
  return (
    `M${round(x1)} ${round(y1)}V${round(turn - radius)}q0 ${radius} ${aside} ${radius}` +
    `H${round(x2 - aside)}q${aside} 0 ${aside} ${radius}V${round(end)}`
  );
}
