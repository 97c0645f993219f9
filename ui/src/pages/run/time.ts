/** Where a time lies on an axis from 0 to 1, with or without the stretches in which nothing happened. */

import type { RunModel } from './model';

export interface Scale {
  at: (ms: number) => number;
}

/** Longer idle stretches are drawn as long as this part of all that was busy. */
const GAP = 0.012;

export function squeeze(model: RunModel, collapse: boolean): Scale {
  const length = Math.max(1, model.length);
  if (!collapse) return { at: (ms) => Math.min(1, Math.max(0, ms / length)) };
  const busy: [number, number][] = [];
  const spans = model.steps.flatMap((step) => (step.kind === 'person' ? [] : [[step.start, step.end] as [number, number]]));
  for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) {
    const last = busy.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else busy.push([start, end]);
  }
  const total = busy.reduce((sum, [start, end]) => sum + end - start, 0) || 1;
  const most = total * GAP;
  // Points of the axis: times, and where they are drawn.
  const points: [number, number][] = [[0, 0]];
  let drawn = 0;
  let before = 0;
  for (const [start, end] of busy) {
    drawn += Math.min(start - before, most);
    points.push([start, drawn]);
    drawn += end - start;
    points.push([end, drawn]);
    before = end;
  }
  drawn += Math.min(Math.max(0, length - before), most);
  points.push([length, drawn]);
  return {
    at: (ms) => {
      let low = 0;
      let high = points.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (points[middle]![0] <= ms) low = middle;
        else high = middle;
      }
      const [t0, d0] = points[low]!;
      const [t1, d1] = points[high]!;
      const part = t1 > t0 ? Math.min(1, Math.max(0, (ms - t0) / (t1 - t0))) : 1;
      return Math.min(1, (d0 + part * (d1 - d0)) / (drawn || 1));
    },
  };
}
