import type { Reservation } from '@sluice/shared/http/memory-budget';
import { reserve } from '../../http/request-memory.ts';
import { EXACT_DISTINCT_MAX, emptyValue } from './series-measure.ts';
import type { PlaceRow, SeriesPart, Written } from './series-query.ts';

/** The numbers of one place: of everything together, of a group, or of all other groups. */
export interface Numbers {
  /** The value over the range; `undefined` when not all of its buckets are known. */
  readonly total: number | null | undefined;
  /** One for each bucket; NaN where there is none. */
  readonly values: Float64Array;
}

/** Returns the values of buckets without events. */
export function emptyValues({ request }: Pick<SeriesPart, 'request'>, buckets: number): Float64Array {
  return new Float64Array(buckets).fill(emptyValue(request.measure) ?? Number.NaN);
}

/** Collects the rows of a part, in a tenth of the memory that they take as arrays of arrays. */
export class SeriesLines {
  readonly places = new Map<number, Numbers>();
  /** The hash and the keys of each place that has some. */
  readonly groups = new Map<number, readonly string[]>();
  /** Whether no number is an estimate, or beyond the range of 64-bit floats. */
  exact = true;
  readonly #part: SeriesPart;
  readonly #memory: Reservation | undefined;
  /** By the start of a bucket. */
  readonly #indexes: ReadonlyMap<number, number>;

  constructor(part: SeriesPart, memory: Reservation | undefined) {
    this.#part = part;
    this.#memory = memory;
    this.#indexes = new Map(part.range.buckets.map((start, index) => [start, index]));
  }

  /** @throws {Problem} `overloaded` */
  add([place, group, total, cells]: PlaceRow): void {
    const buckets = this.#part.range.buckets.length;
    const characters = group.reduce((sum, key) => sum + key.length, 0);
    reserve(this.#memory, buckets * Float64Array.BYTES_PER_ELEMENT + 2 * characters);
    const values = emptyValues(this.#part, buckets);
    for (const [start, value] of cells)
      values[this.#indexes.get(start) as number] = this.#numberOf(value) ?? Number.NaN;
    this.places.set(place, { total: this.#numberOf(total), values });
    if (group.length > 0) this.groups.set(place, group);
  }

  #numberOf(value: Written): number | null {
    const isEstimate = this.#part.approximate && value !== null && Number(value) > EXACT_DISTINCT_MAX;
    if (typeof value === 'string' || isEstimate) this.exact = false;
    return typeof value === 'string' ? null : value;
  }
}
