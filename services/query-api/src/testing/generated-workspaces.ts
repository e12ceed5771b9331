import { setTimeout as wait } from 'node:timers/promises';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { DELETIONS_FORGOTTEN_MS, type QueryService, TEST_WORKSPACES, type TestEvent } from './query-service.ts';

export const HOUR_MS = 3_600_000;

/** Seven weeks in which the clocks change in Havana and New York, in Berlin, and in Lord Howe. */
export const CLOCK_CHANGES = {
  startMs: Date.UTC(2026, 1, 26),
  hours: 49 * 24,
  zones: ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'America/Havana'],
} as const;

/** A time in {@link CLOCK_CHANGES}, in milliseconds. Half hours around midnights count most. */
export const anyTimeOfClockChanges = fc
  .tuple(fc.nat(CLOCK_CHANGES.hours), fc.constantFrom(-1, 0, 0.5 * HOUR_MS - 1, 0.5 * HOUR_MS))
  .map(([hours, ms]) => CLOCK_CHANGES.startMs + hours * HOUR_MS + ms);

/** The events of a workspace are in two parts; the first one has so many. */
const PART_EVENTS = 9;

/** A filter of a request, and which events match it. */
export interface EventFilter {
  readonly parameter: string;
  holds(event: TestEvent): boolean;
}

/** Workspaces with generated events. In every other one the deletion of the user ada is pending. */
export interface GeneratedWorkspaces {
  readonly names: readonly string[];
  /** Stores all events and deletions, and waits until the service knows them. */
  store(query: QueryService): Promise<void>;
  /** The events of a workspace, by its index, that no deletion hides. */
  shown(workspace: number): TestEvent[];
}

/**
 * @param count of workspaces, at most that of {@link TEST_WORKSPACES}
 * @param receivedUs when the events were received at the earliest, in microseconds
 */
export function generateWorkspaces(
  count: number,
  events: fc.Arbitrary<TestEvent[]>,
  receivedUs: number,
): GeneratedWorkspaces {
  const generated = sample(events, count);
  const names = TEST_WORKSPACES.slice(0, count);
  const deletedUs = receivedUs + 6;
  const hasDeletion = (workspace: number) => workspace % 2 === 1;
  return {
    names,
    async store(query) {
      for (const [index, name] of names.entries()) {
        const stored = generated[index] ?? [];
        await query.store(name, stored.slice(0, PART_EVENTS));
        await query.store(name, stored.slice(PART_EVENTS));
        if (!hasDeletion(index)) continue;
        const deletion = { workspace_id: name, user_id: 'ada', version: deletedUs, stored_at: 1 };
        await query.insert('pending_deletions', [deletion]);
      }
      await wait(DELETIONS_FORGOTTEN_MS);
    },
    shown(workspace) {
      const stored = generated[workspace] ?? [];
      if (!hasDeletion(workspace)) return stored;
      return stored.filter(({ userId, receivedAtUs }) => userId !== 'ada' || receivedAtUs > deletedUs);
    },
  };
}
