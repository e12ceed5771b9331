import { EVENTS_PER_PERSON, fillLinked, LINKED_DAYS, LINKED_USER } from '../data/linked-events.ts';
import { DAY_MS } from '../data/traffic.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf, quotients, VoidRun } from '../report/benchmark.ts';

export const IDENTITY: Benchmark<{ rounds: number; events: number }> = {
  name: 'identity',
  title: 'Reads that count visitors as their users',
  method:
    'Events of 90 days of one workspace, three of each person: two before it signs in, with an anonymous id alone, and one with its user. ' +
    'Each visitor is linked to its user: of 3 million events there are a million links. A second workspace has a tenth of such events, and no links. Each read is ' +
    'asked in turn with `identity=raw`, `linked`, and `raw` again. With `raw`, a report about users leaves two thirds of the events out: so it is also asked ' +
    "of a third workspace, where the same events all name their user. A figure is the CPU of ClickHouse in the statements of a request, by ClickHouse's own " +
    'log of queries; a ratio is to `raw` of its round, and what is asked again shows the noise.',
  size: { rounds: 7, events: 3_000_000 },
  measure,
};

/** The workspaces. */
const [LINKED, UNLINKED, NAMED] = ['linked', 'unlinked', 'named'];

interface Read {
  readonly name: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly bar?: Bar;
}

function readsOf(endMs: number): readonly Read[] {
  const range = {
    startDate: new Date(endMs - LINKED_DAYS * DAY_MS).toISOString(),
    endDate: new Date(endMs).toISOString(),
  };
  const [once, oneAndAHalf, twice] = [{ atMost: 1.3 }, { atMost: 1.5 }, { atMost: 2 }];
  const page = { total: 'none', limit: '100' };
  return [
    { name: 'the newest page of events', path: '/events', parameters: page, bar: once },
    { name: "a page of a user's events", path: '/events', parameters: { ...page, userId: LINKED_USER }, bar: twice },
    {
      ...{ name: "a user's events by day", path: '/events/series', bar: twice },
      parameters: { ...range, userId: LINKED_USER },
    },
    { name: 'events by day', path: '/events/series', parameters: range },
    {
      name: 'distinct users by day',
      path: '/events/series',
      parameters: { ...range, measure: 'users' },
      bar: oneAndAHalf,
    },
    {
      ...{ name: 'a funnel', path: '/events/funnel', bar: oneAndAHalf },
      parameters: { ...range, steps: 'page_viewed,signed_in', within: '90d' },
    },
    {
      ...{ name: 'retention by week', path: '/events/retention', bar: oneAndAHalf },
      parameters: { ...range, interval: 'week', periods: '8' },
    },
  ];
}

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using engine = await BenchEngine.start(12 * 1_024 ** 3, { queryLog: true });
  const database = await engine.createDatabase('identity');
  await fillLinked(database, { workspace: LINKED, events, firstEvents: 'linked' });
  await fillLinked(database, { workspace: UNLINKED, events: Math.ceil(events / 10), firstEvents: 'of strangers' });
  await fillLinked(database, { workspace: NAMED, events, firstEvents: 'of users' });
  await engine.settleMerges();

  const figures: Figure[] = [];
  await using named = await QueryApi.start(engine.url, 'identity', NAMED);
  for (const workspace of [LINKED, UNLINKED]) {
    await using api = await QueryApi.start(engine.url, 'identity', workspace);
    await expectLinked(api, workspace === LINKED ? EVENTS_PER_PERSON : 1);
    figures.push(...(await measureWorkspace(engine, { api, named }, workspace, rounds)));
  }
  return figures;
}

async function measureWorkspace(
  engine: BenchEngine,
  { api, named }: { api: QueryApi; named: QueryApi },
  workspace: string,
  rounds: number,
): Promise<readonly Figure[]> {
  const table = workspace === LINKED ? 'A workspace with links' : 'A workspace without links';
  const figures: Figure[] = [];
  for (const read of readsOf(Date.now())) {
    const costs = { raw: [] as number[], linked: [] as number[], again: [] as number[], named: [] as number[] };
    // Round -1 warms up.
    for (let round = -1; round < rounds; round += 1) {
      for (const way of ['raw', 'linked', 'again', 'named'] as const) {
        const identity = way === 'linked' ? 'linked' : 'raw';
        const ms = await engine.statementsCpuMs(() => ask(way === 'named' ? named : api, read, identity));
        if (round >= 0) costs[way].push(ms);
      }
    }
    // Who counts distinct users counts the visitors as well, who are nobody there.
    const bar = workspace === LINKED ? read.bar : read.parameters['measure'] ? undefined : { atMost: 1.02 };
    figures.push(
      { table, ...figureOf(read.name, 'raw', 'ms', costs.raw) },
      { table, ...figureOf(read.name, 'linked', 'ms', costs.linked) },
      { table, ...figureOf(read.name, 'linked ÷ raw', '', quotients(costs.linked, costs.raw), bar) },
      { table, ...figureOf(read.name, 'raw ÷ raw (the noise)', '', quotients(costs.again, costs.raw)) },
    );
    if (workspace === LINKED) {
      const column = 'linked ÷ raw where all events name users';
      figures.push({ table, ...figureOf(read.name, column, '', quotients(costs.linked, costs.named)) });
    }
  }
  return figures;
}

/** @throws {VoidRun} unless a user has so many events, those of its visitors among them */
async function expectLinked(api: QueryApi, events: number): Promise<void> {
  const { body } = await api.get('/events', { userId: LINKED_USER, identity: 'linked' });
  if (body.total !== events)
    throw new VoidRun(`${LINKED_USER} has ${body.total} events with identity=linked, not ${events}`);
}

/** @throws {VoidRun} when a response is no success, or is not complete: then its cost says nothing */
async function ask(api: QueryApi, { name, path, parameters }: Read, identity: string): Promise<void> {
  const { status, body } = await api.get(path, { ...parameters, identity });
  if (status !== 200 || (body as { complete?: boolean }).complete === false) {
    throw new VoidRun(`${name}, ${identity}: ${status} ${JSON.stringify(body).slice(0, 300)}`);
  }
}
