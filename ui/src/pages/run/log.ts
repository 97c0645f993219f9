/** Every event of a run as one line: the complete text equivalent of its graph. */

import { brief, count, counted, duration, who } from '../../lib/format';
import { stepTitle } from '../../lib/live';
import type { DurableEvent } from '../../lib/types';
import type { RunModel } from './model';

export interface LogLine {
  seq: number;
  at: string;
  ms: number;
  session: string;
  agent: string;
  kind: string;
  text: string;
  failed: boolean;
  step: string;
}

export function logLines(model: RunModel, events: readonly DurableEvent[]): LogLine[] {
  return events.map((event) => ({
    seq: event.seq,
    at: event.at,
    ms: new Date(event.at).getTime() - model.began,
    session: event.session_id,
    agent: event.session_id === model.root ? '' : (model.lanes.get(event.session_id)?.name ?? ''),
    kind: event.type === 'step.completed' ? event.kind : event.type,
    text: textOf(event),
    failed: ('error' in event && !!event.error) || event.type === 'run.failed',
    step: event.step_id,
  }));
}

function textOf(event: DurableEvent): string {
  switch (event.type) {
    case 'run.started':
      return `Question: ${event.question}`;
    case 'agent.started':
      return `An agent begins (${event.pattern}): ${event.goal}`;
    case 'call.intended':
      return `About to call ${event.tool}`;
    case 'input.required':
      return `${event.tool} asks for input: ${counted(event.forms, 'form')}`;
    case 'step.completed': {
      const cost = [event.ms === undefined ? '' : duration(event.ms), event.in_token === undefined ? '' : `${count(event.in_token)} in`, event.out_token === undefined ? '' : `${count(event.out_token)} out`].filter(Boolean).join(', ');
      const choices = (event.option_sets ?? []).map((set) => `${set.decision}: ${set.chosen.map((one) => brief(one, 60)).join(', ') || 'nothing'} out of ${set.options.length || 'free text'}, by ${set.decided_by}`);
      const said = event.error ? `failed: ${event.error}` : event.content ?? event.thought ?? '';
      return [stepTitle(event), ...choices, brief(said, 400), cost].filter(Boolean).join(' · ');
    }
    case 'fanout.started':
      return `Round ${event.round}: ${event.goals.length} agents sent out: ${event.goals.map((goal) => brief(goal.goal, 80)).join('; ')}`;
    case 'fanout.joined':
      return `Round ${event.round} joined (${event.cause.replace(/-/g, ' ')}): ${event.members.filter((member) => !member.error).length} of ${event.members.length} findings came${event.members.filter((member) => member.error).map((member) => `; agent ${member.index} failed: ${member.error}`).join('')}`;
    case 'decision.requested':
      return `Asked a person: ${event.question}${(event.forms ?? []).map((form) => ` “${brief(form.message, 200)}”`).join('')} (options: ${event.options.join(', ')}; without an answer: ${event.otherwise})`;
    case 'decision.made':
      return [
        `${event.decided_by ? `Decided ${who(event.decided_by)}` : 'Nobody decided in time'}: ${event.option_sets[0]?.chosen.join(', ') ?? ''}`,
        event.option_sets[0]?.rationale ? `because: ${brief(event.option_sets[0].rationale, 200)}` : '',
        event.arguments ? `arguments instead: ${brief(JSON.stringify(event.arguments), 200)}` : '',
        event.content ? `filled in: ${brief(JSON.stringify(event.content), 200)}` : '', event.result ? `result as told: ${brief(event.result, 200)}` : '',
      ].filter(Boolean).join(' · ');
    case 'run.told':
      return `Message ${who(event.told_by)}: ${event.message}`;
    case 'agent.completed':
    case 'run.completed':
    case 'run.failed':
      return `Ended: ${event.state} (${event.reason.replace(/-/g, ' ')})${event.error ? `: ${event.error}` : ''}${event.answer ? ` · ${brief(event.answer, 300)}` : ''}`;
    default:
      // Of a newer server than this page.
      return brief(JSON.stringify(event satisfies never), 400);
  }
}
