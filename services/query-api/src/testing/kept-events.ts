import { setTimeout as wait } from 'node:timers/promises';
import { anEvent, type QueryService, TEST_WORKSPACES, type TestEvent } from './query-service.ts';

export const DAY_MS = 86_400_000;
/** What tests of retention set the clock to. */
export const NOW = Date.UTC(2026, 2, 10, 13, 30);
export const TODAY = Date.UTC(2026, 2, 10);

/** Longer than the service reuses its look-up of retentions, in milliseconds. */
const RETENTION_FORGOTTEN_MS = 1_050;

let settings = 0;

/** Sets for how many days the events of each workspace are kept, of those alone; the empty name is that of all others. */
export async function keep(query: QueryService, days: Readonly<Record<string, number>>): Promise<void> {
  settings += 1;
  const rows = ['', ...TEST_WORKSPACES].map((workspace_id) => ({
    ...{ workspace_id, days: days[workspace_id] ?? 0 },
    set_at: settings,
  }));
  await query.insert('retention', rows);
  await wait(RETENTION_FORGOTTEN_MS);
}

/** The first millisecond that is kept with a retention. */
export function keptFrom(days: number): number {
  return TODAY - days * DAY_MS;
}

/** The events of the cut itself: the last that expired, and the first that is kept. */
export function atCut(days: number): TestEvent[] {
  return [-1, 0].map((ms) => anEvent({ timestampMs: keptFrom(days) + ms, event: 'e0', userId: 'u1' }));
}
