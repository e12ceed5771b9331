import { together } from '../measure/cpu-time.ts';
import type { LoadShape } from '../processes/load.ts';
import { type LoadCost, PROCESS_NAMES, System } from '../processes/system.ts';
import { type Benchmark, type Figure, figureOf, quotients, VoidRun } from '../report/benchmark.ts';

const ROUND_MS = 2_500;

/** What the events of a load name, as a column says it; the first one is what the others are compared with. */
const FORMS = {
  'a user': 'of no visitor',
  'a user and a known visitor': 'submissions',
  'a user and a new visitor': 'of new visitors',
} as const;

type Column = keyof typeof FORMS;

const LOADS: readonly (LoadShape & { readonly table: string; readonly columns: readonly Column[] })[] = [
  {
    ...{ table: '1 event a request', eventsPerRequest: 1, connections: 256, durationMs: ROUND_MS },
    columns: ['a user', 'a user and a known visitor', 'a user and a new visitor'],
  },
  {
    ...{ table: '20 events a request', eventsPerRequest: 20, connections: 64, durationMs: ROUND_MS },
    // All events of a request have one user, of whom a thousand visitors are linked.
    columns: ['a user', 'a user and a known visitor'],
  },
];

export const LINKS: Benchmark<{ rounds: number }> = {
  name: 'links',
  title: 'Storing events that name a visitor and a user',
  method:
    'The whole pipeline with real engines, until every event is stored, visible and merged. Submissions of 600 bytes an event, in turn with an anonymous id that ' +
    'means nobody, with one that is linked to the user already, and with another one in each event, of which each writes a link. In each round the known ones must write ' +
    "none, otherwise the run is void: so Kafka and ClickHouse do the same as for a user alone, and what differs there is ClickHouse's merges.",
  size: { rounds: 7 },
  measure,
};

async function measure({ rounds }: { rounds: number }): Promise<readonly Figure[]> {
  await using system = await System.start();
  const figures: Figure[] = [];
  for (const { table, columns, ...load } of LOADS) {
    const costs = new Map<Column, LoadCost[]>(columns.map((column) => [column, []]));
    // Round -1 warms up, and links what is known then.
    for (let round = -1; round < rounds; round += 1) {
      for (const column of columns) {
        const before = await linksOf(system);
        const cost = await system.measureCost({ ...load, form: FORMS[column] });
        if (round < 0) continue;
        expectLinks(column, cost.events, (await linksOf(system)) - before);
        costs.get(column)?.push(cost);
      }
    }
    figures.push(...figuresOf(table, costs));
  }
  await system.expectExactlyOnce();
  return figures;
}

async function linksOf({ engines, pipeline }: System): Promise<number> {
  return Number(await engines.query(`SELECT count() FROM ${pipeline.database}.identity_links`));
}

/** @throws {VoidRun} unless each event of a new visitor has written a link, and others none */
function expectLinks(column: Column, events: number, links: number): void {
  const expected = column === 'a user and a new visitor' ? events : 0;
  if (links !== expected) throw new VoidRun(`${events} events with ${column} have written ${links} links`);
}

function figuresOf(table: string, costs: ReadonlyMap<Column, readonly LoadCost[]>): readonly Figure[] {
  const base = costs.get('a user') ?? [];
  return [...costs].flatMap(([column, rounds]) => {
    const figure = (row: string, unit: string, values: readonly number[], bar?: { atMost: number }): Figure => ({
      table,
      ...figureOf(row, column, unit, values, bar),
    });
    const ofProcess = (name: string, of: readonly LoadCost[]) => of.map(({ cpuUs }) => cpuUs[name] ?? Number.NaN);
    const all = (of: readonly LoadCost[]) => of.map(({ cpuUs }) => together(cpuUs));
    const bar = column === 'a user and a known visitor' ? { atMost: 1.05 } : undefined;
    const ratio = (name: string) =>
      figure(`${name} ÷ that of a user`, '', quotients(ofProcess(name, rounds), ofProcess(name, base)), bar);
    const ratios = column === 'a user' ? [] : [ratio('ingest-api'), ratio('writer')];
    return [
      figure('CPU an event, together', 'µs', all(rounds)),
      ...PROCESS_NAMES.map((name) => figure(`CPU an event, ${name}`, 'µs', ofProcess(name, rounds))),
      ...ratios,
    ];
  });
}
