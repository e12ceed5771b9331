import type { PlantedFault } from './planted-fault.ts';

const writer = (name: string) => `services/writer/src/${name}`;
const storage = (name: string) => `packages/storage/src/${name}`;

const REPLICAS = storage('clickhouse/replicas.ts');
const OWNERSHIP = storage('clickhouse/ownership.ts');

/** Faults of the writer at one of several replicas, which `simulate --only replicated` has to find within a minute. */
export const PLANTED_REPLICATED_FAULTS: readonly PlantedFault[] = [
  {
    name: 'replicated/other-replicas-not-taken-over',
    file: OWNERSHIP,
    search: 'const places = [{ client: this.#options.client, server }, ...others];',
    replacement: 'const places = [{ client: this.#options.client, server }, ...others].slice(0, 1);',
    breaks: 'The former owner goes on at another replica, and its events are stored twice.',
  },
  {
    name: 'replicated/takes-over-with-an-old-file',
    file: REPLICAS,
    search: 'if (row.replicas <= named) return row.now_ms;',
    replacement: 'if (row.replicas > 0) return row.now_ms;',
    breaks:
      'A writer that does not know a replica takes over without fencing it: what is stored there late is stored twice.',
  },
  {
    name: 'replicated/epoch-recorded-at-own-alone',
    file: OWNERSHIP,
    search: 'await Promise.all(\n        places.map(',
    replacement: "await Promise.all(\n        (step === 'record-epoch' ? places.slice(0, 1) : places).map(",
    breaks: 'An insert of the former owner that begins late at another replica is not refused.',
  },
  {
    name: 'replicated/statements-ended-at-own-alone',
    file: OWNERSHIP,
    search: 'await Promise.all(\n        places.map(',
    replacement: "await Promise.all(\n        (step === 'end-older-statements' ? places.slice(0, 1) : places).map(",
    breaks: 'An insert of the former owner that is running at another replica is not ended.',
  },
  {
    name: 'replicated/other-replicas-named-as-own',
    file: OWNERSHIP,
    search: '{ ...epoch, server: place.server }',
    replacement: 'epoch',
    breaks: 'Other replicas refuse a take-over that names the own one, and nobody ever owns a partition.',
  },
  {
    name: 'replicated/synced-in-the-background',
    file: writer('group/partition-keeper.ts'),
    search: 'await replicas?.takeOver();',
    replacement: 'void replicas?.takeOver().catch(() => undefined);',
    breaks: 'Partitions go on before the own replica has what the former owner has stored.',
  },
  {
    name: 'replicated/not-synced-at-take-over',
    file: writer('group/partition-keeper.ts'),
    search: 'await replicas?.takeOver();',
    replacement: '',
    breaks: 'What the former owner has stored at another replica is not found, and stored again.',
  },
  {
    name: 'replicated/another-replica-synced-at-take-over',
    file: REPLICAS,
    search: 'await this.#sync(this.#options.own, READ_BY_BATCHES);',
    replacement: 'await this.#sync(this.#options.others[0] ?? this.#options.own, READ_BY_BATCHES);',
    breaks: 'The replica that batches read is not the one that has everything.',
  },
  {
    name: 'replicated/events-not-synced',
    file: REPLICAS,
    search: "...['events', 'user_deletions', 'identity_deletions', 'console_fast_properties'],",
    replacement: "...['user_deletions', 'identity_deletions', 'console_fast_properties'],",
    breaks: 'Events of the former owner are not there to be found.',
  },
  {
    name: 'replicated/positions-not-synced',
    file: REPLICAS,
    search: "...['writer_positions', 'writer_halts'],",
    replacement: "...['writer_halts'],",
    breaks: 'Positions that the former owner has stored are not there: partitions are halted.',
  },
  {
    name: 'replicated/no-quorum',
    file: 'packages/shared/src/clickhouse/settings.ts',
    search: 'insert_quorum: String(QUORUM),',
    replacement: "insert_quorum: '0',",
    breaks: 'What is committed may be at one replica alone, and dies with it.',
  },
  {
    name: 'replicated/quorum-of-one',
    file: 'packages/shared/src/clickhouse/settings.ts',
    search: 'const QUORUM = 2;',
    replacement: 'const QUORUM = 1;',
    breaks: 'An insert ends before a second replica has its rows.',
  },
  {
    name: 'replicated/blocks-deduplicated',
    file: 'packages/shared/src/clickhouse/settings.ts',
    search: 'insert_quorum_parallel: 1,',
    replacement: 'insert_quorum_parallel: 1,\n    insert_deduplicate: 1 as 0,',
    breaks: 'An insert that was lost with its replica counts as stored when it is repeated.',
  },
  {
    name: 'replicated/found-events-not-kept',
    file: writer('group/batch-loop.ts'),
    search: 'if (hasFound && replicas) await',
    replacement: 'if (hasFound && !replicas) await',
    breaks: 'Events that were found at one replica alone are committed, and die with it.',
  },
  {
    name: 'replicated/found-events-of-the-last-piece',
    file: writer('group/batch-loop.ts'),
    search: 'hasFound ||= stored.hasFound;',
    replacement: 'hasFound = stored.hasFound;',
    breaks: 'Events that an earlier piece of a batch has found are at one replica alone.',
  },
  {
    name: 'replicated/found-events-by-keys-alone',
    file: writer('batch/staged-batch.ts'),
    search: 'this.#hasFound ||= hasKeys || hasUuids;',
    replacement: 'this.#hasFound ||= hasUuids;',
    breaks: 'Events that were found by their keys are at one replica alone.',
  },
  {
    name: 'replicated/found-events-kept-at-own',
    file: REPLICAS,
    search: 'for (const client of this.#options.others) {',
    replacement: 'for (const client of [this.#options.own]) {',
    breaks: 'The replica that was looked at has what was found; it is another one that has to.',
  },
  {
    name: 'replicated/kept-in-another-table',
    file: REPLICAS,
    search: "await this.#sync(client, ['events']);",
    replacement: "await this.#sync(client, ['writer_positions']);",
    breaks: 'Events that were found are at one replica alone.',
  },
  {
    name: 'replicated/first-table-not-synced',
    file: REPLICAS,
    search: 'for (const table of tables) {',
    replacement: 'for (const table of tables.slice(1)) {',
    breaks: 'A replica counts as level that lacks events.',
  },
  {
    name: 'replicated/goes-on-at-a-stuck-replica',
    file: REPLICAS,
    search: 'if (!isElsewhere.includes(true)) continue;',
    replacement: 'if (isElsewhere.includes(true)) continue;',
    breaks: 'A writer stays at a replica that is read-only while another one is not.',
  },
  {
    name: 'replicated/begins-at-a-stuck-replica',
    file: REPLICAS,
    search: 'return row?.stuck === 0 ? row.behind : Number.POSITIVE_INFINITY;',
    replacement: 'return row?.behind ?? Number.POSITIVE_INFINITY;',
    breaks: 'A writer that ends because its replica is read-only begins anew there.',
  },
  {
    name: 'replicated/found-events-whose-sync-fails',
    file: REPLICAS,
    search: 'if (failures.length > 0) throw failures[0];',
    replacement: '',
    breaks: 'Events that were found at one replica alone are committed while no other one can be brought level.',
  },
  {
    name: 'replicated/undecided-after-failures',
    file: writer('group/batch-loop.ts'),
    search: 'if (replicas) await this.#keepTrying(() => replicas.requireDecided(), messages, signal);',
    replacement: '',
    breaks: 'What a failed insert has left is found and committed, and then removed, as Keeper does not have it.',
  },
  {
    name: 'replicated/undecided-at-take-over',
    file: REPLICAS,
    search: '    await this.requireDecided();\n',
    replacement: '',
    breaks: 'A new owner finds what a failed insert of the former one has left, and commits it; then it is removed.',
  },
];
