import type { QueryContext } from '../../clickhouse/query.ts';
import { LARGE_ROWS_SETTINGS } from '../../clickhouse/query-settings.ts';
import type { EventField } from '../../events/event-columns.ts';
import { asEventRow, positionOf, selectOf, textOf } from '../../events/event-record.ts';
import type { EventSelection } from '../../events/event-selection.ts';
import { createPageReader } from '../../events/events-page.ts';
import { listKeyOf } from '../../events/events-parameters.ts';
import type { PagePaces } from '../../events/page-paces.ts';
import { createPause } from '../../pause.ts';
import type { ReportRunner } from '../report-runner.ts';

/** How many events a sample has at most. */
export const SAMPLE_EVENTS_MAX = 10_000;

/** How many characters a sample reads of its field: it ends with the event that reaches this number. */
export const SAMPLE_CHARACTERS_MAX = 8 * 1_024 * 1_024;

/** What a sample is taken of. */
export interface SampleRequest {
  readonly selection: EventSelection;
  /** The field that is looked at. */
  readonly field: EventField;
  /** Looks at one event, and returns whether it is the last one that the menu can hold. */
  readonly visit: (text: string, timestampMs: number) => boolean;
}

/** Reads the newest of the selected events, and returns how many it looked at. */
export type ReadSample = (request: SampleRequest, context: QueryContext) => Promise<number>;

/**
 * Creates what reads samples: the newest {@link SAMPLE_EVENTS_MAX} events of a selection, or fewer where their field is
 * long. It reads them as a page is read, so that the cost does not grow with what is stored.
 */
export function createSampleReader(runner: ReportRunner, paces: PagePaces, timeoutMs: number): ReadSample {
  const sampled: ReportRunner = {
    // A sample of large events ends long before its last one.
    rows: (query) => runner.rows({ ...query, kind: 'event_sample', settings: LARGE_ROWS_SETTINGS }),
    all: async (query) => await runner.all(query),
  };
  return async ({ selection, field, visit }, context) => {
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
    const pause = createPause();
    for await (const batch of pages.read(request, context)) {
      for (const row of batch.map(asEventRow)) {
        const text = textOf(row, field);
        events += 1;
        characters += text.length;
        const isFull = visit(text, positionOf(row, 'timestamp').timestampMs);
        if (isFull || characters >= SAMPLE_CHARACTERS_MAX) return events;
        await pause();
      }
    }
    return events;
  };
}
