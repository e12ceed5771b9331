import { OF_THE_MODEL } from './faults-of-the-model.ts';
import type { Mutation } from './mutation.ts';
import { PLANTED_INGEST_FAULTS } from './planted-ingest-faults.ts';

/** A fault that the simulator has to find. */
export type PlantedFault = Omit<Mutation, 'tests'>;

const writer = (name: string) => `services/writer/src/${name}`;

/** Faults that are in no other list. */
const OTHERS: readonly PlantedFault[] = [
  {
    name: 'planted/position-stays-behind-a-failed-batch',
    file: writer('kafka/group-consumer.ts'),
    search: '  assignment.goBack(batch);\n',
    replacement: '',
    breaks: 'A batch that failed is passed over.',
  },
  {
    name: 'planted/first-piece-alone',
    file: writer('loop/batch-loop.ts'),
    search: 'done += piece.length;',
    replacement: 'done = messages.length;',
    breaks: 'Of a batch that is stored in pieces, only the first is stored.',
  },
  {
    name: 'planted/goes-on-at-the-higher-offset',
    file: writer('kafka/inspect-partitions.ts'),
    search: 'stored < other ? [stored, other] : [other, stored]',
    replacement: 'stored > other ? [stored, other] : [other, stored]',
    breaks: 'After ClickHouse was restored from a backup, what came since then is lost.',
  },
  {
    name: 'planted/position-of-the-first-message',
    file: writer('loop/batch-loop.ts'),
    search: '[sources[0], sources.at(-1)]',
    replacement: '[sources[0], sources[0]]',
    breaks: 'The stored position lies inside of the batch, so that its writer is fenced.',
  },
  {
    name: 'planted/statements-of-older-epochs-spared',
    file: writer('clickhouse/ownership.ts'),
    search: 'epochPrefix: epochPrefix(epoch) }',
    replacement: 'epochPrefix: groupPrefix }',
    breaks: 'A take-over ends no statement.',
  },
  {
    name: 'planted/incarnation-stays',
    file: writer('protocol/epoch.ts'),
    search: 'return isMember ? { incarnation: newest.incarnation + 1, generation } : undefined;',
    replacement: 'return isMember ? { incarnation: newest.incarnation, generation } : undefined;',
    breaks: 'After Kafka has lost the group, nothing is stored until the generations have caught up.',
  },
  {
    name: 'planted/offset-of-a-take-over-committed-late',
    file: writer('loop/partition-keeper.ts'),
    search: 'if (uncommitted.length > 0) await consumer.commitOffsets(uncommitted);',
    replacement: 'if (uncommitted.length > 0) consumer.commitOffsets(uncommitted).catch(() => undefined);',
    breaks: 'The offset of a batch is replaced by an older one, and the partition seems to lag behind.',
  },
  {
    name: 'planted/goes-on-where-kafka-says',
    file: writer('loop/partition-keeper.ts'),
    search: '    consumer.seek({ topic, partition, offset });\n',
    replacement: '',
    breaks: 'A resumed partition is fetched from another offset than its position.',
  },
  {
    name: 'planted/offset-out-of-range-not-inspected',
    file: writer('kafka/group-consumer.ts'),
    search: '      onOutOfRange(this.#assignment, consumer, { topic, partition });\n',
    replacement: '',
    breaks: 'A partition whose next messages were deleted is never stored again.',
  },
  {
    name: 'planted/partition-stays-open-out-of-range',
    file: writer('kafka/group-consumer.ts'),
    search: '      this.#assignment.close({ topic, partition });\n',
    replacement: '',
    breaks: 'A partition whose next messages were deleted is never inspected again.',
  },
  {
    name: 'planted/good-rows-lost-with-a-bad-one',
    file: writer('clickhouse/isolate-bad-rows.ts'),
    search: 'lines.filter((line) => !bad.has(line)),',
    replacement: 'lines.filter(({ message }) => ![...bad.keys()].some((line) => line.message === message)),',
    breaks: 'The good rows of a message with a bad one are lost.',
  },
  {
    name: 'planted/leader-epoch-forgotten',
    file: writer('protocol/position.ts'),
    search: 'leaderEpoch: leaderEpochOf(message) },',
    replacement: 'leaderEpoch: 1_000 },',
    breaks: 'A log that was cut off and has grown again is read on.',
  },
  {
    name: 'planted/rows-of-deleted-users-not-dropped',
    file: writer('clickhouse/inspect-staged-rows.ts'),
    search: 'deleted: mayBeDeleted ?',
    replacement: 'deleted: mayBeDeleted && !mayBeDeleted ?',
    breaks: 'An event that comes after the erasure of its user creates the user anew.',
  },
  {
    name: 'planted/erased-at-once',
    file: writer('erasure/erasure.ts'),
    search: '{ delayMs, usersMax, ...cursor }',
    replacement: '{ delayMs: 0, usersMax, ...cursor }',
    breaks: 'An insert that began before the deletion ends after the erasure.',
  },
  {
    name: 'planted/halt-not-recorded',
    file: writer('clickhouse/halts.ts'),
    search: 'await client.command({ query: sql, query_params: { ...common, ...halt, ...epoch } }).catch',
    replacement: 'await Promise.resolve(sql).catch',
    breaks: 'No operator sees the halt.',
  },
  {
    name: 'planted/heartbeats-not-sent-while-storing',
    file: writer('kafka/heartbeats.ts'),
    search: 'heartbeat().catch(reject)',
    replacement: 'Promise.resolve(heartbeat)',
    breaks: 'The group removes a writer that stores a large batch, again and again.',
  },
];

/** Faults that tests were tried with before the simulator found them. */
const OF_THE_TESTS: readonly PlantedFault[] = [
  {
    name: 'protocol/dead-letters-not-kept',
    file: writer('protocol/steps.ts'),
    search: "if (state.hasDeadLetters) return 'store-dead-letters';",
    replacement: '',
    breaks: 'The offsets of rows that cannot be stored are committed without the rows being kept.',
  },
  {
    name: 'protocol/epoch-not-recorded',
    file: writer('protocol/steps.ts'),
    search: "['record-epoch', 'end-older-statements']",
    replacement: "['end-older-statements']",
    breaks: 'No insert of an older epoch is ever refused.',
  },
  {
    name: 'protocol/users-after-events',
    file: writer('protocol/steps.ts'),
    search: "  'store-seen-in-events',\n  'store-events',\n",
    replacement: "  'store-events',\n  'store-seen-in-events',\n",
    breaks: 'A crash between the two leaves users and organizations of stored events missing.',
  },
  {
    name: 'protocol/users-of-repeats-seen',
    file: writer('protocol/steps.ts'),
    search: "  'find-repeats',\n  'store-seen-in-events',\n",
    replacement: "  'store-seen-in-events',\n  'find-repeats',\n",
    breaks: 'A repeat of a stored event creates the user and the organization that it names.',
  },
  {
    name: 'writer/repeats-stored',
    file: writer('clickhouse/staged-batch.ts'),
    search: "if (isRepeated) await this.#staging.run(STATEMENTS['drop-repeats']);",
    replacement: '',
    breaks: 'An event that is sent again is stored twice.',
  },
  {
    name: 'writer/stamped-repeats-of-a-batch-stored',
    file: writer('clickhouse/staged-batch.ts'),
    search: ' || stamped_events > stamped_uuids',
    replacement: '',
    breaks: 'A stamped event that a batch holds twice is stored twice.',
  },
  {
    name: 'partitions/lost-positions-open',
    file: writer('kafka/inspect-partitions.ts'),
    search: 'if (low > 0n || committed > 0n)',
    replacement: 'if (low > committed && committed >= 0n)',
    breaks: 'A writer goes on at the committed offsets of a ClickHouse that has lost everything.',
  },
  {
    name: 'partitions/new-ones-without-a-position',
    file: writer('loop/partition-keeper.ts'),
    search: 'if (unknown.length > 0 && assignment.epoch) await positions.store(unknown, assignment.epoch);',
    replacement: '',
    breaks:
      'Messages of a new partition that Kafka deleted too early cannot be told from rows that ClickHouse has lost.',
  },
  {
    name: 'writer/pending-deletions-not-stored',
    file: writer('clickhouse/staged-batch.ts'),
    search: "    await this.#staging.run(STATEMENTS['store-pending-deletions']);\n",
    replacement: '',
    breaks: 'No query hides what is deleted, and nothing erases it.',
  },
  {
    name: 'writer/first-offset-stays-uncommitted',
    file: writer('loop/partition-keeper.ts'),
    search: 'if (position.nextOffset !== committed)',
    replacement: 'if (committed >= 0n && position.nextOffset !== committed)',
    breaks:
      'After a writer ended between storing and committing the first messages of a partition, its lag grows for ever. What retention deletes of new partitions is not noticed.',
  },
];

/** Faults that prove the simulator: it has to find each of them within a minute. */
export const PLANTED_FAULTS: readonly Mutation[] = [
  ...[...OF_THE_MODEL, ...OF_THE_TESTS, ...OTHERS].map((fault) => ({ ...fault, tests: [] })),
  ...PLANTED_INGEST_FAULTS,
];
