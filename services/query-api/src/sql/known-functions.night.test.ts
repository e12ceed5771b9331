import { afterAll, beforeAll, expect, test } from 'vitest';
import { askEngine } from '../testing/refused-functions.ts';
import { type SqlService, startSql } from '../testing/sql-service.ts';
import { isAllowedFunction, isHigherOrder } from './allowed-functions.ts';
import { ResolvedCheck } from './resolved-check.ts';

// Of all functions that the engine knows: what a new version of it may add.

let service: SqlService;

beforeAll(async () => {
  service = await startSql();
});
afterAll(() => service.stop());

test('those that take the name of a function are known', async () => {
  const candidates = "name LIKE 'array%' OR name LIKE 'map%' OR concat(syntax, arguments) ILIKE '%lambda%'";
  const known = await askEngine(service, `SELECT name FROM system.functions WHERE ${candidates}`);
  const taking: string[] = [];
  await inParallel(known.filter(isAllowedFunction), async (name) => {
    for (const call of ["(isNotNull, ['a'])", "(equals, map('a', 'a'))", '(toString, 1, [1])', '(plus, [1], 1)']) {
      const tree = await askEngine(service, `EXPLAIN QUERY TREE passes = 1 SELECT \`${name}\`${call}`);
      if (!tree.some((row) => row.includes('__function_ref_arg'))) continue;
      taking.push(name);
      return;
    }
  });
  expect(taking).toEqual(expect.arrayContaining(['arrayMap', 'arrayFilter', 'mapFilter']));
  expect(taking.filter((name) => !isHigherOrder(name))).toEqual([]);
});

test('what ClickHouse resolves is refused without the syntax tree as well', async () => {
  const known = await askEngine(service, "SELECT name FROM system.functions WHERE origin = 'System'");
  // An aggregate function of nothing but NULL is one of the first.
  const refused = known.filter((name) => !/^nothing/.test(name) && !isAllowedFunction(name));
  const passed: string[] = [];
  let resolved = 0;
  await inParallel(refused, async (name) => {
    for (const sql of [
      `\`${name}\`()`,
      `\`${name}\`('a')`,
      `arrayMap(\`${name}\`, ['a'])`,
      `[arrayMap(\`${name}\`, ['a'])]`,
    ]) {
      const explain = `EXPLAIN QUERY TREE passes = 1 SELECT (SELECT ${sql}) SETTINGS enable_scalar_subquery_optimization = 0`;
      const tree = await askEngine(service, explain);
      if (!tree[0]?.startsWith('QUERY')) continue;
      resolved += 1;
      const check = new ResolvedCheck('test_sql_sql', ['events']);
      for (const row of tree) check.add(row.replaceAll("\\'", "'"));
      if (isFine(() => check.refuse())) passed.push(sql);
    }
  });
  expect(resolved).toBeGreaterThan(50);
  expect(passed).toEqual([]);
});

/** Runs something for each item, eight at a time. */
async function inParallel<Item>(items: readonly Item[], run: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items];
  const next = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await run(item);
  };
  await Promise.all(Array.from({ length: 8 }, next));
}

function isFine(run: () => void): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}
