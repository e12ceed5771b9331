import { createHash } from 'node:crypto';
import type { Alert, Condition } from './alert.ts';
import type { Trouble } from './trouble.ts';

/** What is known of an alert: the position of its webhook, as JSON. Times in milliseconds since 1970. */
export interface AlertState {
  /** Tells the condition that was judged from one that is changed since. */
  readonly of: string;
  /** The end of the window that was evaluated last; 0: none was. */
  readonly endMs: number;
  /** Its number, and that of the window before it where the condition compares. */
  readonly value: number | null;
  readonly before: number | null;
  /** In how many evaluations in a row the condition held. */
  readonly held: number;
  readonly firing: boolean;
  /** How many messages it has had, and when the last one was decided. */
  readonly messages: number;
  readonly messageAtMs: number;
  /** Why it is not evaluated now, if it is not. */
  readonly trouble: Trouble | null;
}

export const NEW_STATE: AlertState = {
  ...{ of: '', endMs: 0, value: null, before: null, held: 0 },
  ...{ firing: false, messages: 0, messageAtMs: 0, trouble: null },
};

/** Returns the state of an alert as it is now: what was judged of another condition does not count, but what was sent does. */
export function stateOf(alert: Alert, stored: AlertState): AlertState {
  const of = keyOf(alert);
  if (stored.of === of) return stored;
  const { firing, messages, messageAtMs } = stored;
  return { ...NEW_STATE, of, firing, messages, messageAtMs };
}

function keyOf({ view, condition, window, for: times }: Alert): string {
  return createHash('sha256')
    .update(JSON.stringify([view, condition, window, times]))
    .digest('base64url')
    .slice(0, 16);
}

/** The number of a window, and of the one before it. `null`: no event has one. */
export interface Evaluation {
  readonly endMs: number;
  readonly value: number | null;
  readonly before: number | null;
}

/** Returns the state after an evaluation. It has changed if it fires and did not before, or the other way round. */
export function judged({ condition, for: times }: Alert, state: AlertState, evaluation: Evaluation): AlertState {
  const isMet = holds(condition, evaluation);
  const held = isMet ? state.held + 1 : 0;
  return { ...state, ...evaluation, held, firing: isMet && (state.firing || held >= times), trouble: null };
}

/** Whether a condition holds. A number that is not there is neither above nor below another one, and has not changed. */
export function holds(condition: Condition, { value, before }: Omit<Evaluation, 'endMs'>): boolean {
  if (condition.is === 'absent') return value === null || value === 0;
  if (value === null) return false;
  if (condition.is === 'changes') {
    const change = changeInPercent(value, before);
    return change !== undefined && Math.abs(change) >= condition.percent;
  }
  return condition.is === 'above' ? value > condition.threshold : value < condition.threshold;
}

/** Returns by how much a number has changed, in percent of the one before; infinite from 0. Undefined without one of them. */
export function changeInPercent(value: number | null, before: number | null): number | undefined {
  if (value === null || before === null) return undefined;
  if (value === before) return 0;
  return ((value - before) / Math.abs(before)) * 100;
}

/** How an alert is, in a word. */
export const STATUSES = ['new', 'ok', 'pending', 'firing', 'late', 'error'] as const;

export function statusOf({ trouble, endMs, firing, held }: AlertState): (typeof STATUSES)[number] {
  if (trouble) return trouble.kind === 'late' ? 'late' : 'error';
  if (endMs === 0) return 'new';
  if (firing) return 'firing';
  return held > 0 ? 'pending' : 'ok';
}
