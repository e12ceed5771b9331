import { expect, test } from 'vitest';
import type { Row } from '../clickhouse-reader.ts';
import { DeletionsUnknown } from '../read-failures.ts';
import { LOCAL_TABLES } from '../tables.ts';
import { CHAINED_MERGES_MAX, readDeletedWithUsers } from './deleted-with-users.ts';

/** Returns who is deleted with `u0` where so many merges follow one another, and how many statements that took. */
async function readChain(length: number) {
  let statements = 0;
  const queryRunner = {
    async all({ statement }: { readonly statement: (tables: typeof LOCAL_TABLES) => { readonly params: object } }) {
      statements += 1;
      const { of_deleted_users: given = [] } = statement(LOCAL_TABLES).params as { of_deleted_users?: string[] };
      const known = ['u0', ...given];
      return Array.from({ length }, (_, index): Row => [`u${index + 1}`, 7]).filter((_, index) =>
        known.includes(`u${index}`),
      );
    },
  };
  const found = await readDeletedWithUsers(queryRunner as never, 'a', {}).catch((error) => error as Error);
  return { found, statements };
}

test('with a deleted user a chain of merges is deleted, and of a longer one nothing is known: each costs a statement', async () => {
  const { found, statements } = await readChain(CHAINED_MERGES_MAX);
  expect(found).toHaveLength(CHAINED_MERGES_MAX);
  expect(statements).toBe(CHAINED_MERGES_MAX + 1);
  const longer = await readChain(1_000);
  expect(longer.found).toBeInstanceOf(DeletionsUnknown);
  expect(longer.statements).toBe(CHAINED_MERGES_MAX + 1);
});
