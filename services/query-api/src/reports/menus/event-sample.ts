import { Turns } from '@sluice/shared/base/turns';
import type { EventField } from '../../records/events/event-columns.ts';
import { asEventRow, selectOf, sortKeyOf, textOf } from '../../records/events/event-record.ts';
import type { EventSelection } from '../../records/events/event-selection.ts';
import { PageReader } from '../../records/events/events-page.ts';
import { listKeyOf } from '../../records/events/events-parameters.ts';
import { PagePaces } from '../../records/events/page-paces.ts';
import type { QueryContext } from '../../store/query.ts';
import type { QueryRunner } from '../../store/query-runner.ts';
import { LARGE_ROWS_SETTINGS } from '../../store/query-settings.ts';
import { REPORT } from '../report-runner.ts';

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

/**
 * Reads samples: the newest {@link SAMPLE_EVENTS_MAX} events of a selection, or fewer where their field is long. It reads
 * them as a page is read, so that the cost does not grow with what is stored.
 */
export class SampleReader {
  readonly #pages: PageReader;

  /** @param timeoutMs how long a sample may take */
  constructor(queryRunner: Pick<QueryRunner, 'rows'>, timeoutMs: number) {
    // A sample of large events ends long before its last one.
    const query = { kind: 'event_sample', settings: LARGE_ROWS_SETTINGS, ...REPORT } as const;
    this.#pages = new PageReader({ queryRunner, paces: new PagePaces(), timeoutMs, query });
  }

  /** Reads the newest of the selected events, and returns how many it looked at. */
  async read({ selection, field, visit }: SampleRequest, context: QueryContext): Promise<number> {
    const select = selectOf((selected) => selected === field || selected === 'timestamp');
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
    const turns = new Turns();
    for await (const batch of this.#pages.read(request, context, select)) {
      for (const row of batch.map(asEventRow)) {
        const text = textOf(row, field);
        events += 1;
        characters += text.length;
        const isFull = visit(text, sortKeyOf(row, 'timestamp').timestampMs);
        if (isFull || characters >= SAMPLE_CHARACTERS_MAX) return events;
        await turns.next();
      }
    }
    return events;
  }
}
