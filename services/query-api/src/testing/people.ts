import { expect } from 'vitest';
import type { QueryService } from './query-service.ts';

/** A person behind a number of a report. */
interface Person {
  readonly id: string;
  readonly startedAt: string;
  readonly reachedAt?: string;
}

/** Returns the people of all pages, each page with its own number of them at most. */
export async function allPeople(
  query: QueryService,
  url: string,
  { workspace = 'a', limit = 2 }: { readonly workspace?: string | undefined; readonly limit?: number } = {},
): Promise<Person[]> {
  const found: Person[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await query.get(`${url}&limit=${limit}${cursor}`, workspace);
    expect([status, body.errors]).toEqual([200, undefined]);
    const { results, nextCursor, complete } = body as unknown as {
      results: Person[];
      nextCursor: string | null;
      complete: boolean;
    };
    expect(complete).toBe(true);
    expect(results.length).toBeLessThanOrEqual(limit);
    found.push(...results);
    if (nextCursor === null) return found;
    expect(results.length).toBe(limit);
    cursor = `&cursor=${nextCursor}`;
  }
}

/** Returns people in the order of a list. */
export function inOrderOfIds<Item extends { readonly id: string }>(people: readonly Item[]): Item[] {
  return people.toSorted((one, other) => Buffer.compare(Buffer.from(one.id), Buffer.from(other.id)));
}
