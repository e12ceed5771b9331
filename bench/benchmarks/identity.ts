import { fillLinked, LINKED_DAYS, LINKED_USER, type LinkedWorkspace, nameless } from '../data/linked-events.ts';
import { DAY_MS } from '../data/traffic.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf, quotients, VoidRun } from '../report/benchmark.ts';

export const IDENTITY: Benchmark<{ rounds: number; events: number }> = {
  name: 'identity',
  title: 'Reads that count visitors as their users',
  method:
    'Events of 90 days, three of each person: two before it signs in, with an anonymous id alone, and one with its user. Each visitor is linked ' +
    'to its user: of 3 million events there are a million links. A second workspace has as many events, ten of each person in three visits, of which the last ' +
    'one names the user: so there are 300,000 links. With `raw`, a report about users leaves out what visitors did, so it is no measure for `linked`: the same events are read ' +
    'in workspaces where all of them name their user, which is what a read would cost if the user stood in each event. The bars are to that. A last workspace has a tenth ' +
    'of such events, and no links. Each read is asked in turn with `identity=raw`, `linked`, and `raw` again, which shows the noise. A figure is the CPU of ClickHouse ' +
    "in the statements of a request, by ClickHouse's own log of queries; a ratio is to the other one of its round.",
  size: { rounds: 7, events: 3_000_000 },
  measure,
};

type Workspace = Omit<LinkedWorkspace, 'events'>;

const LINKED: Workspace = { workspace: 'linked', eventsPerPerson: 3, firstEvents: 'linked' };
const NAMED: Workspace = { workspace: 'named', eventsPerPerson: 3, firstEvents: 'of users' };
const UNLINKED: Workspace = { workspace: 'unlinked', eventsPerPerson: 3, firstEvents: 'of strangers' };
const LINKED_OFTEN: Workspace = { workspace: 'linked-often', eventsPerPerson: 10, firstEvents: 'linked' };
const NAMED_OFTEN: Workspace = { workspace: 'named-often', eventsPerPerson: 10, firstEvents: 'of users' };

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
  await fillLinked(database, { ...LINKED, events });
  await fillLinked(database, { ...NAMED, events });
  await fillLinked(database, { ...UNLINKED, events: Math.ceil(events / 10) });
  await fillLinked(database, { ...LINKED_OFTEN, events });
  await fillLinked(database, { ...NAMED_OFTEN, events });
  await engine.settleMerges();

  return [
    ...(await measureWorkspace(engine, 'A workspace with links, three events of each person', [LINKED, NAMED], rounds)),
    ...(await measureWorkspace(engine, 'Ten events of each person', [LINKED_OFTEN, NAMED_OFTEN], rounds)),
    ...(await measureWorkspace(engine, 'A workspace without links', [UNLINKED], rounds)),
  ];
}

/** @param named has the same events, all of which name their user */
async function measureWorkspace(
  engine: BenchEngine,
  table: string,
  [asked, named]: readonly [Workspace, Workspace?],
  rounds: number,
): Promise<readonly Figure[]> {
  await using api = await QueryApi.start(engine.url, 'identity', asked.workspace);
  await using other = named && (await QueryApi.start(engine.url, 'identity', named.workspace));
  await expectLinked(api, asked);
  const figures: Figure[] = [];
  for (const read of readsOf(Date.now())) {
    const costs = { raw: [] as number[], linked: [] as number[], again: [] as number[], named: [] as number[] };
    const measured = async (api: QueryApi, identity: string) =>
      await engine.statementsCpuMs(() => ask(api, read, identity));
    // Round -1 warms up.
    for (let round = -1; round < rounds; round += 1) {
      const ms = {
        ...{
          raw: await measured(api, 'raw'),
          linked: await measured(api, 'linked'),
          again: await measured(api, 'raw'),
        },
        named: other ? await measured(other, 'raw') : 0,
      };
      if (round < 0) continue;
      for (const way of ['raw', 'linked', 'again', 'named'] as const) costs[way].push(ms[way]);
    }
    figures.push(
      { table, ...figureOf(read.name, 'raw', 'ms', costs.raw) },
      { table, ...figureOf(read.name, 'linked', 'ms', costs.linked) },
    );
    if (other) {
      figures.push(
        { table, ...figureOf(read.name, 'all named', 'ms', costs.named) },
        { table, ...figureOf(read.name, 'linked ÷ all named', '', quotients(costs.linked, costs.named), read.bar) },
      );
    }
    // Who counts distinct users counts the visitors as well, who are nobody there.
    const bar = other || read.parameters['measure'] ? undefined : { atMost: 1.02 };
    figures.push(
      { table, ...figureOf(read.name, 'linked ÷ raw', '', quotients(costs.linked, costs.raw), bar) },
      { table, ...figureOf(read.name, 'raw ÷ raw (the noise)', '', quotients(costs.again, costs.raw)) },
    );
  }
  return figures;
}

/** @throws {VoidRun} unless a user has its events, those of its visitors among them */
async function expectLinked(api: QueryApi, { eventsPerPerson, firstEvents }: Workspace): Promise<void> {
  const { body } = await api.get('/events', { userId: LINKED_USER, identity: 'linked' });
  const events = firstEvents === 'of strangers' ? eventsPerPerson - nameless(eventsPerPerson) : eventsPerPerson;
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
