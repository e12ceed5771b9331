import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import { generateKey } from '@sluice/shared/keys/keys-file';
import { eventHash } from '@sluice/shared/rows/row-hashes';
import { HOW_TO_REPEAT, SEED } from '@sluice/shared/testing/fast-check';
import { until } from '@sluice/shared/testing/until';
import { deletionRow } from '@sluice/submissions/rows/deletion-row';
import { linkRow, saidRow } from '@sluice/submissions/rows/link-row';
import { packMessages } from '@sluice/submissions/rows/message-packing';
import { type OutgoingRow, RowCollector } from '@sluice/submissions/rows/partition-rows';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import {
  conflictsOf,
  drawGraph,
  type IdentityGraph,
  shownEventsOf,
  shuffled,
  VERSIONS_OF_GRAPH,
} from '../kit/identity-orders.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { Random } from '../simulation/world/random.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

const GRAPHS = 500;
const ORDERS = 20;
const PARTITIONS = 3;
const NAME = 'identityorders';

/** How long it may take to send everything: until then no deletion may be settled, as nothing comes that is older than it. */
const ERASURE_DELAY_MS = 60_000;

/** How often the writers are killed meanwhile, each in its turn. */
const KILLS = 6;

test('500 graphs of links, conflicts, what is said and taken back, deletions and returns, each in 20 orders with repeats and kills: two mirrors answer as the facts do one by one, and have nothing of it on the disk', async () => {
  const random = new Random(SEED, 'identities');
  const workspaces = Array.from({ length: ORDERS }, (_, order) => `order${order}`);
  const keys = Object.fromEntries(workspaces.map((workspace) => [workspace, generateKey()]));
  const databases = { a: `test_${NAME}_a`, b: `test_${NAME}_b` };
  await using pipeline = await startPipeline({
    ...{ kafkaBrokers, clickhouseUrl, name: NAME, keys },
    servers: {
      a: { url: clickhouseUrl, database: databases.a },
      b: { url: clickhouseUrl, database: databases.b },
    },
    env: {
      KAFKA_PARTITIONS: String(PARTITIONS),
      ERASURE_DELAY_MS: String(ERASURE_DELAY_MS),
      ERASURE_INTERVAL_MS: '500',
      STATEMENT_TIMEOUT_MS: '15000',
    },
  });
  const startUs = (Date.now() - 1_000) * 1_000;
  const graphs = Array.from({ length: GRAPHS }, (_, index) =>
    drawGraph(random, `${index}:`, startUs + index * VERSIONS_OF_GRAPH),
  );
  const killing = killWriters(pipeline);
  await send(workspaces.flatMap((workspace) => rowsOf(graphs, workspace, random)));
  // Otherwise a deletion may be settled by now, and what comes after that is dropped, as it should be.
  if (Date.now() * 1_000 > startUs + ERASURE_DELAY_MS * 1_000) throw new Error('sending took too long to say anything');
  await killing;
  await pipeline.drained();

  const expected = expectedOf(graphs);
  const expectAnswers = async () => {
    for (const database of Object.values(databases)) {
      const api = await pipeline.startAnother('query-api', {
        ...{ CLICKHOUSE_SERVERS_FILE: '', CLICKHOUSE_URL: clickhouseUrl, CLICKHOUSE_DATABASE: database },
      });
      for (const [workspace, key] of Object.entries(keys)) {
        const answers = await answersOf(api.url, key);
        for (const [name, answer] of Object.entries(expected)) {
          expect([database, workspace, name, answers[name as keyof typeof expected]], HOW_TO_REPEAT).toEqual([
            ...[database, workspace, name, answer],
          ]);
        }
      }
      await api.kill9();
    }
  };
  await expectAnswers();
  const read = async (database: string, sql: string) => Number(await readClickHouse(clickhouseUrl, sql, { database }));
  for (const database of Object.values(databases)) {
    await until(
      `everything to be erased from ${database}`,
      async () => (await read(database, 'SELECT count() FROM pending_deletions')) === 0,
      600_000,
    );
    const stored = await read(database, 'SELECT count() FROM events');
    expect([database, stored]).toEqual([database, ORDERS * expected.events.length]);
  }
  await expectAnswers();
});

/** Returns the rows of all graphs in one order, some of them several times. */
function rowsOf(graphs: readonly IdentityGraph[], workspace: string, random: Random): readonly OutgoingRow[] {
  const rows = graphs.flatMap((graph) => [
    ...graph.events.map(
      ({ uuid, userId, anonymousId, version }): OutgoingRow => ({
        ...{ topic: 'events', kind: 'events', hash: eventHash(uuid) },
        line: JSON.stringify({
          ...{ workspace_id: workspace, timestamp: Math.floor(version / 1_000), uuid, event: 'e', user_id: userId },
          ...{ anonymous_id: anonymousId, properties: {}, context: {}, received_at: version },
        }),
      }),
    ),
    ...graph.facts.map(({ anonymousId, userId, version, isSaid }) =>
      isSaid
        ? saidRow({ anonymousId, ...(userId !== '' && { userId }) }, { workspace, version })
        : linkRow({ anonymousId, userId }, { workspace, version }),
    ),
    ...graph.deletions.map(({ userId, version }) => deletionRow(userId, workspace, version)),
  ]);
  const repeats = rows.filter(() => random.isTrue(0.2));
  return shuffled([...rows, ...repeats], random);
}

async function send(rows: readonly OutgoingRow[]): Promise<void> {
  const config = {
    KAFKA_BROKERS: [...kafkaBrokers],
    KAFKA_TOPIC_PREFIX: '',
    KAFKA_PARTITIONS: PARTITIONS,
    KAFKA_SSL: false,
  };
  const producer = createKafka(config, 'test-sender', createLogger('test', 'silent')).producer();
  await producer.connect();
  for (let start = 0; start < rows.length; start += 2_000) {
    const collector = new RowCollector(PARTITIONS, () => undefined);
    for (const row of rows.slice(start, start + 2_000)) collector.add(row);
    for (const [topic, ofTopic] of Map.groupBy(collector.finish(), (one) => one.topic)) {
      const byPartition = Map.groupBy(ofTopic, (one) => one.partition);
      const messages = [...byPartition].flatMap(([partition, items]) => packMessages(partition, items, PARTITIONS));
      await producer.send({ topic: `${NAME}.${topic}`, messages });
    }
  }
  await producer.disconnect();
}

async function killWriters(pipeline: Pipeline): Promise<void> {
  const writers = { ...pipeline.writers };
  for (let kill = 0; kill < KILLS; kill += 1) {
    const server = ['a', 'b'][kill % 2] as string;
    const writer = writers[server];
    if (!writer) throw new Error(`there is no writer of ${server}`);
    await writer.kill9();
    writers[server] = await pipeline.replace(writer);
  }
}

interface Answers {
  readonly events: readonly string[];
  readonly conflicts: readonly string[];
}

function expectedOf(graphs: readonly IdentityGraph[]): Answers {
  return {
    events: graphs
      .flatMap((graph) => shownEventsOf(graph).map(({ uuid, person }) => `${uuid} ${person || null}`))
      .sort(),
    conflicts: graphs.flatMap((graph) => conflictsOf(graph)).sort(),
  };
}

async function answersOf(url: string, key: string): Promise<Answers> {
  const all = async (path: string, textOf: (one: Record<string, string | null>) => string) => {
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const response = await fetch(`${url}${path}limit=1000${more}`, { headers: { authorization: `Bearer ${key}` } });
      const body = (await response.json()) as { results: Record<string, string | null>[]; nextCursor: string | null };
      expect([path, response.status]).toEqual([path, 200]);
      found.push(...body.results.map(textOf));
      cursor = body.nextCursor;
    }
    return found.sort();
  };
  return {
    events: await all('/events?identity=linked&total=none&', ({ uuid, linkedUserId }) => `${uuid} ${linkedUserId}`),
    conflicts: await all(
      '/identities/conflicts?',
      ({ anonymousId, userId, otherUserId }) => `${anonymousId} ${userId} ${otherUserId}`,
    ),
  };
}
