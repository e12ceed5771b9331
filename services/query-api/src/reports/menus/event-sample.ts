import { Turns } from '@sluice/shared/base/turns';
import {
  asEventRow,
  type Entity,
  type EventField,
  type EventSelection,
  groupsOf,
  listKeyOf,
  type Owner,
  PageDensities,
  PageReader,
  readEntities,
  selectOf,
  sortKeyOf,
  textOf,
} from '../../records/records.ts';
import {
  LARGE_ROWS_SETTINGS,
  type QueryContext,
  type QueryRunner,
  RequestQueries,
  TimeBudget,
} from '../../store/store.ts';
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
    this.#pages = new PageReader({ queryRunner, densities: new PageDensities(), timeoutMs, query });
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

/** How many users or organizations a sample of their properties has at most: it ends with the event of the last one. */
export const SAMPLE_OWNERS_MAX = 1_000;

/** A user or an organization of sampled events. */
export interface SampledOwner {
  /** As it is now. */
  readonly entity: Entity;
  /** How many of the events are of it. */
  readonly events: number;
  /** When the last of them was, in milliseconds. */
  readonly lastMs: number;
}

interface OwnersRequest {
  readonly selection: EventSelection;
  readonly owner: Owner;
  /** Looks at one owner, and returns whether it is the last one that the menu can hold. */
  readonly visit: (owner: SampledOwner) => Promise<boolean>;
}

/** Reads the users or organizations of a sample of events. */
export class SampledOwners {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #samples: SampleReader;
  readonly #timeoutMs: number;

  /** @param timeoutMs how long reading the owners may take */
  constructor(queryRunner: Pick<QueryRunner, 'all'>, samples: SampleReader, timeoutMs: number) {
    this.#queryRunner = queryRunner;
    this.#samples = samples;
    this.#timeoutMs = timeoutMs;
  }

  /** Reads the owners of the newest of the selected events, and returns how many events these are. */
  async read({ selection, owner, visit }: OwnersRequest, context: QueryContext): Promise<number> {
    const sampled = new Map<string, { events: number; lastMs: number }>();
    const count = (id: string, timestampMs: number) => {
      const { events, lastMs } = sampled.get(id) ?? { events: 0, lastMs: timestampMs };
      if (id !== '') sampled.set(id, { events: events + 1, lastMs: Math.max(lastMs, timestampMs) });
      return sampled.size >= SAMPLE_OWNERS_MAX;
    };
    const field = owner === 'user' ? 'userId' : 'groupId';
    const events = await this.#samples.read({ selection, field, visit: count }, context);
    const queries = new RequestQueries(this.#queryRunner, context, new TimeBudget(this.#timeoutMs));
    for (const ids of groupsOf([...sampled.keys()])) {
      const items = ids.map((id) => ({ id }));
      for await (const { found } of readEntities(queries, { kind: owner, properties: [] }, items)) {
        for (const entity of found) {
          const known = sampled.get(entity.id);
          if (known && (await visit({ entity, ...known }))) return events;
        }
      }
    }
    return events;
  }
}
