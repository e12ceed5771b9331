import { isoTime } from '../../records/entities/entity-record.ts';
import type { QueryContext } from '../../store/query.ts';
import type { QueryRunner } from '../../store/query-runner.ts';
import { type MenuRequest, readEventNames, readNameValues } from './event-names.ts';
import { SampleReader } from './event-sample.ts';
import type { ValuesRequest } from './menus-parameters.ts';
import { PropertyPaths } from './property-paths.ts';
import { CountedValues, type FoundValue, valuesOfProperty } from './property-values.ts';

/** What there is to choose from. */
export interface Menu {
  /** As JSON. */
  readonly results: readonly string[];
  /** In how many events they were found; `null` when they were counted in all. Names have none. */
  readonly sampledEvents?: number | null;
}

/** Reads what there is to choose from. */
export class MenuReader {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #samples: SampleReader;

  /** @param timeoutMs how long a sample may take */
  constructor(queryRunner: Pick<QueryRunner, 'rows' | 'all'>, timeoutMs: number) {
    this.#queryRunner = queryRunner;
    this.#samples = new SampleReader(queryRunner, timeoutMs);
  }

  /** Reads names and types of events. */
  async names(request: MenuRequest, context: QueryContext): Promise<Menu> {
    const names = await readEventNames(this.#queryRunner, request, context);
    const results = names.map(({ firstSeenMs, lastSeenMs, ...name }) =>
      JSON.stringify({ ...name, firstSeenAt: isoTime(firstSeenMs), lastSeenAt: isoTime(lastSeenMs) }),
    );
    return { results };
  }

  /** Reads the names of properties. */
  async properties({ selection, prefix, limit }: MenuRequest, context: QueryContext): Promise<Menu> {
    const paths = new PropertyPaths(prefix, context.memory);
    const visit = (text: string, timestampMs: number) => {
      paths.add(text, timestampMs);
      return paths.isFull;
    };
    const sampledEvents = await this.#samples.read({ selection, field: 'properties', visit }, context);
    const results = (await paths.first(limit)).map(({ path, types, count, lastSeenMs }) =>
      JSON.stringify({ path, types, share: count / sampledEvents, lastSeenAt: isoTime(lastSeenMs) }),
    );
    return { results, sampledEvents };
  }

  /** Reads the values of a field or a property. */
  async values(request: ValuesRequest, context: QueryContext): Promise<Menu> {
    const { selection, source, prefix, limit } = request;
    const { field, property } = source;
    if (field === 'event' || field === 'type') {
      const values = await readNameValues(this.#queryRunner, field, request, context);
      return { results: values.map((value) => JSON.stringify(value)), sampledEvents: null };
    }
    const counted = new CountedValues(prefix, context.memory);
    const visit = (text: string) => {
      // An identifier that is missing is empty.
      const values = text === '' ? [] : [text];
      counted.add(property === undefined ? values : valuesOfProperty(text, property));
      return counted.isFull;
    };
    const sampledEvents = await this.#samples.read({ selection, field, visit }, context);
    return { results: (await counted.first(limit)).map(valueJson), sampledEvents };
  }
}

function valueJson({ json, count }: FoundValue): string {
  return `{"value":${json},"count":${count}}`;
}
