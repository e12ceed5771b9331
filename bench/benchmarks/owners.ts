import { WORKSPACE } from '../data/filter-queries.ts';
import { fillOwned, OWNED, OWNED_DAYS } from '../data/owners.ts';
import { DAY_MS } from '../data/traffic.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf, quotients, VoidRun } from '../report/benchmark.ts';

export const OWNERS: Benchmark<{ rounds: number; events: number }> = {
  name: 'owners',
  title: 'Reads by properties of users and organizations',
  method:
    'Events of 90 days of one workspace, of an organization for each 100 of them, and two users for each three. Half of the users have a country, one of five, and ' +
    'an organization has a plan, one of four. A few users and organizations have most of the events. Each read is asked in turn with the ' +
    "others. A figure is the CPU of ClickHouse in the statements of a request, by ClickHouse's own log of queries; a ratio is to another read " +
    'of its round, and what is measured again shows the noise. Counts by day have their bars against the same with a property of the event, ' +
    'since those without a filter are read from a projection. The bars are those of 3 million events.',
  size: { rounds: 7, events: 3_000_000 },
  measure,
};

interface Read {
  /** The heading of its table. */
  readonly table: string;
  readonly name: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** The names of the reads of the table that it is compared with, each with the bar of the ratio, if there is one. */
  readonly over?: Readonly<Record<string, Bar | undefined>>;
}

const [ONCE_AND_A_HALF, TWICE, THREE_TIMES] = [{ atMost: 1.5 }, { atMost: 2 }, { atMost: 3 }];

/** Rare values are of who has events, but few. */
const FILTERS = {
  common: { [OWNED.organization.common]: 'business' },
  without: { [`${OWNED.organization.common}[ne]`]: 'business' },
  rare: { [OWNED.organization.rare]: 'manager-2900' },
  user: { [OWNED.user.common]: 'DE' },
  oneUser: { [OWNED.user.rare]: '50000@example.com' },
} as const;

const ROW = {
  common: "an organization's property that one in four has",
  without: '`ne` of it',
  rare: "an organization's property that ten have",
  user: "a user's property that one in ten has",
  oneUser: "a user's property that one has",
} as const;

const PROPERTY = 'properties.seats';

function readsOf(endMs: number): readonly Read[] {
  const endDate = new Date(endMs).toISOString();
  const since = (days: number) => ({ startDate: new Date(endMs - days * DAY_MS).toISOString(), endDate });
  return [...pages(), ...counts(since(OWNED_DAYS)), ...journeys(since(OWNED_DAYS)), ...segments(since(30))];
}

function pages(): readonly Read[] {
  const page = (name: string, parameters: Read['parameters'], over?: Read['over']): Read => ({
    ...{ table: 'Pages of events', name, path: '/events', parameters: { total: 'none', ...parameters } },
    ...(over && { over }),
  });
  const newest = { 'the newest page': THREE_TIMES };
  return [
    page('the newest page', {}),
    page('the newest page, again', {}, { 'the newest page': undefined }),
    page('one `groupId`', { groupId: 'org-2900' }, { 'the newest page': undefined }),
    page(ROW.common, FILTERS.common, newest),
    page(ROW.without, FILTERS.without, newest),
    page(ROW.rare, FILTERS.rare, newest),
    page(ROW.user, FILTERS.user, newest),
    page(ROW.oneUser, FILTERS.oneUser, newest),
  ];
}

function counts(range: Read['parameters']): readonly Read[] {
  const count = (name: string, parameters: Read['parameters'], over?: Read['over']): Read => ({
    ...{ table: 'Counts by day', name, path: '/events/series' },
    parameters: { ...range, interval: 'day', ...parameters },
    ...(over && { over }),
  });
  const [filter, group] = ["a filter by an event's property", "groups by an event's property"];
  return [
    count('a filter by `userId[ne]`', { 'userId[ne]': 'user-1' }),
    count(filter, { [PROPERTY]: '0' }),
    count(`${filter}, again`, { [PROPERTY]: '0' }, { [filter]: undefined }),
    count(`a filter by ${ROW.common}`, FILTERS.common, { 'a filter by `userId[ne]`': undefined, [filter]: TWICE }),
    count(`a filter by ${ROW.rare}`, FILTERS.rare, { 'a filter by `userId[ne]`': undefined, [filter]: TWICE }),
    count(`a filter by ${ROW.user}`, FILTERS.user, { 'a filter by `userId[ne]`': undefined, [filter]: THREE_TIMES }),
    count(group, { groupBy: PROPERTY }),
    count("groups by an organization's property", { groupBy: OWNED.organization.common }, { [group]: ONCE_AND_A_HALF }),
    count("groups by a user's property", { groupBy: OWNED.user.common }, { [group]: THREE_TIMES }),
  ];
}

function journeys(range: Read['parameters']): readonly Read[] {
  const reports = [
    { name: 'funnel', path: '/events/funnel', own: { steps: 'search,signed_in' } },
    { name: 'retention', path: '/events/retention', own: { interval: 'week', periods: '8' } },
  ];
  return reports.flatMap(({ name, path, own }) => {
    const report = (what: string, parameters: Read['parameters'], over?: Read['over']): Read => ({
      ...{ table: 'Funnels and retention', name: what, path, parameters: { ...range, ...own, ...parameters } },
      ...(over && { over }),
    });
    return [
      report(name, {}),
      report(`${name}, again`, {}, { [name]: undefined }),
      report(`${name} with ${ROW.common}`, FILTERS.common, { [name]: TWICE }),
      report(`${name} by an organization's property`, { groupBy: OWNED.organization.common }, { [name]: TWICE }),
    ];
  });
}

function segments(range: Read['parameters']): readonly Read[] {
  const table = 'Segments by behaviour of 30 days';
  const funnel = 'a funnel of the same events';
  const steps = { ...range, steps: 'search,signed_in' };
  const over = { [funnel]: ONCE_AND_A_HALF };
  const count = (name: string, segment: string): Read => ({
    ...{ table, name, path: `/segments/${segment}`, parameters: {}, over },
  });
  return [
    { table, name: funnel, path: '/events/funnel', parameters: steps },
    { table, name: `${funnel}, again`, path: '/events/funnel', parameters: steps, over: { [funnel]: undefined } },
    count('how many users did it', 'searched'),
    count('how many users never did it', 'never-searched'),
    count('how many organizations did it', 'organizations-that-searched'),
    {
      ...{ table, name: 'the first page of users who never did it', path: '/users', over },
      parameters: { segment: 'never-searched' },
    },
    {
      ...{ table, name: 'the funnel of those who did it', path: '/events/funnel', over },
      parameters: { ...steps, segment: 'searched' },
    },
  ];
}

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using engine = await BenchEngine.start(12 * 1_024 ** 3, { queryLog: true });
  const database = await engine.createDatabase('owners');
  await fillOwned(database, events);
  await engine.settleMerges();
  await database.expectExactly(events);

  await using api = await QueryApi.start(engine.url, 'owners', WORKSPACE, { CLICKHOUSE_WEBHOOKS_USER: 'default' });
  const reads = readsOf(Date.now());
  const costs = new Map<Read, number[]>(reads.map((read) => [read, []]));
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    for (const read of reads) {
      const ms = await engine.statementsCpuMs(() => ask(api, read));
      if (round >= 0) costs.get(read)?.push(ms);
    }
  }
  return reads.flatMap((read) => figuresOf(read, costs));
}

/** @throws {VoidRun} when a response is no success, or is not complete: then its cost says nothing */
async function ask(api: QueryApi, { table, name, path, parameters }: Read): Promise<void> {
  const { status, body } = await api.get(path, parameters);
  if (status !== 200 || (body as { complete?: boolean }).complete === false) {
    throw new VoidRun(`${table}, ${name}: ${status} ${JSON.stringify(body).slice(0, 300)}`);
  }
}

function figuresOf(read: Read, costs: ReadonlyMap<Read, readonly number[]>): Figure[] {
  const { table, name, over = {} } = read;
  const own = costs.get(read) ?? [];
  const ofName = (other: string) => [...costs].find(([one]) => one.table === table && one.name === other)?.[1] ?? [];
  return [
    { table, ...figureOf(name, 'CPU', 'ms', own) },
    ...Object.entries(over).map(([other, bar]) => ({
      table,
      ...figureOf(name, `÷ ${other}`, '', quotients(own, ofName(other)), bar),
    })),
  ];
}
