/** Tools as the server lists them, and what a trial of one needs. */
import { isObject, type Json, type JsonObject } from './document';

export interface ToolArgument {
  name: string;
  type: string;
  description: string;
  required?: boolean;
  schema?: Json;
}
export interface ListedTool {
  name: string;
  type: string;
  description: string;
  groups: string[];
  arguments: ToolArgument[];
  effect: 'read' | 'idempotent' | 'unsafe';
  can_be_called: boolean;
  why_not?: string | null;
}
export interface Trial {
  observation: string;
  failed: boolean;
  ms: number;
}

/** What was typed, as the arguments of a call. What is left empty is left out. */
export function argumentsOf(list: ToolArgument[], typed: Record<string, string>): { value: JsonObject; faults: Record<string, string> } {
  const value: JsonObject = {};
  const faults: Record<string, string> = {};
  for (const { name, type, required } of list) {
    const text = typed[name] ?? '';
    if (text.trim() === '') {
      if (required) faults[name] = 'This argument is needed.';
      continue;
    }
    if (type === 'string') {
      value[name] = text;
      continue;
    }
    let read: Json;
    try {
      read = JSON.parse(text) as Json;
    } catch {
      faults[name] = `This is no ${type} in JSON.`;
      continue;
    }
    const fits =
      type === 'integer' ? Number.isInteger(read)
      : type === 'number' ? typeof read === 'number'
      : type === 'boolean' ? typeof read === 'boolean'
      : type === 'array' ? Array.isArray(read)
      : type === 'object' ? isObject(read)
      : true;
    if (fits) value[name] = read;
    else faults[name] = `This is no ${type} in JSON.`;
  }
  return { value, faults };
}
