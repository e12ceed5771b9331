import type { QueryContext } from '../clickhouse/query-runner.ts';
import type { Sql } from '../clickhouse/sql.ts';
import type { EventField } from '../events/event-columns.ts';
import { asEventRow, positionOf, selectOf, textOf } from '../events/event-record.ts';
import type { EventSelection } from '../events/event-selection.ts';
import { createPageReader } from '../events/events-page.ts';
import { listKeyOf } from '../events/events-parameters.ts';
import type { PagePaces } from '../events/page-paces.ts';
import type { ReportRunner } from './report-runner.ts';

/** How many events a sample has at most. */
export const SAMPLE_EVENTS_MAX = 10_000;

/** How many characters a sample reads of its field: it ends with the event that reaches this number. */
export const SAMPLE_CHARACTERS_MAX = 8 * 1_024 * 1_024;

/** How many entries a menu holds in memory: a sample ends with the event that reaches this number. */
export const SAMPLE_ENTRIES_MAX = 100_000;

/** What a sample is taken of. */
export interface SampleRequest {
  readonly selection: EventSelection;
  /** The field that is looked at. */
  readonly field: EventField;
  /** Looks at one event, and returns how many entries the menu has by then. */
  readonly visit: (text: string, timestampMs: number) => number;
}

/** Reads the newest of the selected events, and returns how many it looked at. */
export type ReadSample = (request: SampleRequest, hidden: Sql | undefined, context: QueryContext) => Promise<number>;

/**
 * Creates what reads samples: the newest {@link SAMPLE_EVENTS_MAX} events of a selection, or fewer where their field is
 * long. It reads them as a page is read, so that the cost does not grow with what is stored.
 */
export function createSampleReader(runner: ReportRunner, paces: PagePaces, timeoutMs: number): ReadSample {
  const sampled: ReportRunner = {
    rows: (query) => runner.rows({ ...query, kind: 'event_sample' }),
    all: async (query) => await runner.all(query),
  };
  return async ({ selection, field, visit }, hidden, context) => {
    const select = selectOf((selected) => selected === field || selected === 'timestamp');
    const pages = createPageReader(sampled, paces, timeoutMs, Date.now, select);
    const request = {
      ...selection,
      order: { field: 'timestamp', direction: 'DESC' },
      // A page reads one event more.
      limit: SAMPLE_EVENTS_MAX - 1,
      offset: 0,
      after: undefined,
      workspace: context.workspace,
      listKey: listKeyOf(context.workspace, selection),
    } as const;
    let events = 0;
    let characters = 0;
    for await (const batch of pages.read(request, hidden, context)) {
      for (const row of batch.map(asEventRow)) {
        const text = textOf(row, field);
        events += 1;
        characters += text.length;
        const entries = visit(text, positionOf(row, 'timestamp').timestampMs);
        if (characters >= SAMPLE_CHARACTERS_MAX || entries >= SAMPLE_ENTRIES_MAX) return events;
      }
    }
    return events;
  };
}
