/** Short names for agents. */

const FILLER = new Set([
  'the', 'a', 'an', 'of', 'and', 'for', 'to', 'in', 'on', 'its', 'their', 'analyse', 'analyze', 'assess', 'review', 'find', 'research',
  'investigate', 'evaluate', 'examine', 'identify', 'determine', 'gather', 'summarise', 'summarize', 'check', 'look', 'up', 'what',
  'is', 'are', 'how', 'any', 'all', 'weigh', 'compare', 'collect', 'explore', 'study', 'describe', 'list', 'about',
]);

/** A short name for an agent: the first words of its goal that say something. The whole goal stands beside it. */
export function agentName(goal: string): string {
  const side = /^(for|against)\b[^:]{0,30}:/i.exec(goal);
  if (side) return capital(side[0].slice(0, -1));
  const words = goal.trim().split(/\s+/).slice(0, 40);
  const telling = words.filter((word) => !FILLER.has(word.toLowerCase().replace(/[^\p{L}\p{N}-]/gu, '')));
  const first = (telling.length > 0 ? telling : words).slice(0, 2).map((word) => word.replace(/[,.;:]+$/, ''));
  return capital(first.join(' ').slice(0, 32)) || 'Agent';
}

/** Names for agents that work beside each other: where two would be called the same, what tells their goals apart. */
export function agentNames(goals: readonly string[]): string[] {
  const names = goals.map(agentName);
  return names.map((name, place) => {
    if (names.filter((other) => other === name).length === 1) return name;
    const own = goals[place]!.trim().split(/\s+/).slice(0, 60).map((word) => word.replace(/[,.;:]+$/, ''));
    const others = new Set(goals.filter((_, other) => other !== place).flatMap((goal) => goal.split(/\s+/).map((word) => word.replace(/[,.;:]+$/, ''))));
    const first = own.findIndex((word) => !others.has(word));
    if (first < 0) return `${name} ${place + 1}`;
    // One letter says little without the word before it.
    return capital(own.slice(own[first]!.length < 3 ? Math.max(0, first - 1) : first, first + 1).join(' ').slice(0, 32));
  });
}

const capital = (text: string): string => text.replace(/^./u, (letter) => letter.toUpperCase());
