/** The difference of two texts, line by line. */

export interface Line {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** Beyond so many lines that differ, everything in between is told as removed and added. */
const most = 1500;

export function diff(before: string, after: string): Line[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const line = (kind: Line['kind']) => (text: string): Line => ({ kind, text });
  return [
    ...old.slice(0, head).map(line('same')),
    ...between(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...old.slice(old.length - tail).map(line('same')),
  ];
}

/** By the longest common subsequence. */
function between(old: string[], now: string[]): Line[] {
  const removed = old.map((text): Line => ({ kind: 'removed', text }));
  const added = now.map((text): Line => ({ kind: 'added', text }));
  if (old.length === 0 || now.length === 0 || old.length > most || now.length > most) return [...removed, ...added];
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      lengths[row * width + column] =
        old[row] === now[column]
          ? lengths[(row + 1) * width + column + 1]! + 1
          : Math.max(lengths[(row + 1) * width + column]!, lengths[row * width + column + 1]!);
    }
  }
  const lines: Line[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    if (row < old.length && column < now.length && old[row] === now[column]) {
      lines.push({ kind: 'same', text: old[row]! });
      row += 1;
      column += 1;
    } else if (column >= now.length || (row < old.length && lengths[(row + 1) * width + column]! >= lengths[row * width + column + 1]!)) {
      lines.push(removed[row]!);
      row += 1;
    } else {
      lines.push(added[column]!);
      column += 1;
    }
  }
  return lines;
}

/** Only what changed, with a few lines around it; null stands for what was left out. */
export function folded(lines: Line[], around = 3): (Line | null)[] {
  const near = lines.map((_, place) =>
    lines.slice(Math.max(0, place - around), place + around + 1).some(({ kind }) => kind !== 'same'));
  const told: (Line | null)[] = [];
  lines.forEach((line, place) => {
    if (near[place]) told.push(line);
    else if (told.at(-1) !== null || told.length === 0) told.push(null);
  });
  return told;
}
