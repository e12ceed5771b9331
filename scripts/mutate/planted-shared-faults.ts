import type { PlantedFault } from './planted-fault.ts';

const writer = (name: string) => `services/writer/src/${name}`;
const storage = (name: string) => `packages/storage/src/${name}`;

const CARRIED = storage('clickhouse/carried-tables.ts');
const SHARED = storage('clickhouse/shared-replicas.ts');
const SETTINGS = 'packages/shared/src/clickhouse/settings.ts';
const BATCH = writer('batch/staged-batch.ts');
const WRITER = writer('writer.ts');

/** Faults of the writer of replicas that share their rows behind one address, which `simulate --only shared` has to find within a minute. */
export const PLANTED_SHARED_FAULTS: readonly PlantedFault[] = [
  {
    name: 'shared/reads-are-stale',
    file: SETTINGS,
    search: "select_sequential_consistency: '1',",
    replacement: "select_sequential_consistency: '0',",
    breaks: 'A replica that does not know yet what another one has committed finds nothing of it.',
  },
  {
    name: 'shared/inserts-outlive-their-session',
    file: SETTINGS,
    search: "insert_keeper_max_retries: '0',",
    replacement: "insert_keeper_max_retries: '20',",
    breaks: 'A replica that had lost Keeper commits late what was given up.',
  },
  {
    name: 'shared/ended-batches-not-refused',
    file: CARRIED,
    search: "(SELECT count() FROM ended_batches WHERE id = {attempt:UUID}) > 0, 'the attempt has ended')",
    replacement: "0, 'the attempt has ended')",
    breaks: 'A statement of a batch that was given up arrives late, and stores its rows beside the next attempt.',
  },
  {
    name: 'shared/unknown-replicas-not-refused',
    file: CARRIED,
    search: ' NOT IN (SELECT replica FROM writer_replicas FINAL WHERE NOT is_gone)',
    replacement: " = ''",
    breaks: 'A statement runs at a replica that nobody waits for once it has left.',
  },
  {
    name: 'shared/ended-batches-not-recorded',
    file: BATCH,
    search: "await client.command({ query: STATEMENTS['record-ended-batch'].sql, query_params: { attempt } });",
    replacement: '',
    breaks: 'A statement of a batch that was given up arrives late, and nothing refuses it.',
  },
  {
    name: 'shared/ended-after-statements',
    file: BATCH,
    search:
      '      this.#endedAtMs ??= await this.#recordEnd();\n      await carried.endStatements(prefix, this.#endedAtMs, signal);',
    replacement:
      '      await carried.endStatements(prefix, performance.now(), signal);\n      this.#endedAtMs ??= await this.#recordEnd();',
    breaks:
      'A statement of a batch that was given up begins after its statements were ended, and before that is recorded.',
  },
  {
    name: 'shared/statements-of-batch-not-ended',
    file: BATCH,
    search: 'await carried.endStatements(prefix, this.#endedAtMs, signal);',
    replacement: '',
    breaks: 'An insert that was given up goes on at some replica while its rows are stored again.',
  },
  {
    name: 'shared/older-statements-not-ended',
    file: storage('clickhouse/ownership.ts'),
    search: 'await everywhere.end(meant, joined.signal);',
    replacement: '',
    breaks: 'An insert of the former owner goes on at some replica.',
  },
  {
    name: 'shared/older-statements-ended-at-one-replica',
    file: storage('clickhouse/ownership.ts'),
    search: "if (step === 'end-older-statements' && everywhere) {",
    replacement: 'if (false) {',
    breaks: 'An insert of the former owner goes on at another replica.',
  },
  {
    name: 'shared/ends-of-statements-not-awaited',
    file: SHARED,
    search: 'if (!look.isRunning && (isLate',
    replacement: 'if (true && (isLate',
    breaks: 'A statement that is still running at a replica is taken for over.',
  },
  {
    name: 'shared/sessions-not-looked-at',
    file: SHARED,
    search: 'const haveOldSessions = await this.#haveOldSessions(recorded, signal);',
    replacement: 'const haveOldSessions = true;',
    breaks: 'Keeper commits late what a replica has sent before it lost its session.',
  },
  {
    name: 'shared/young-sessions-taken-for-old',
    file: SHARED,
    search: 'ageMs > timeoutMs',
    replacement: 'ageMs >= 0',
    breaks: 'What was sent in the session before this one may still be committed.',
  },
  {
    name: 'shared/missing-replicas-not-waited-for',
    file: SHARED,
    search: 'const areAllThere = left.length === 0 && strays.length === 0;',
    replacement: 'const areAllThere = true;',
    breaks: 'A replica that has left goes on with an insert, and its rows are stored again meanwhile.',
  },
  {
    name: 'shared/gone-replicas-not-waited-for',
    file: SHARED,
    search: 'const strays = recorded.filter(({ isGone, ageMs: sinceMs }) => isGone && !isOver(sinceMs));',
    replacement: 'const strays = recorded.slice(0, 0);',
    breaks: 'A replica that has left is waited for at the first look alone.',
  },
  {
    name: 'shared/erasure-waits-for-no-insert',
    file: SHARED,
    search: 'await this.#waitUntilOver({ meant, sinceMs: knownAt, signal });',
    replacement: '',
    breaks: 'An insert that does not know the deletion of a visitor is committed once the deletion is forgotten.',
  },
  {
    name: 'shared/one-server-named',
    file: storage('clickhouse/own-database.ts'),
    search: "server: this.#isShared ? '' : newest.answering",
    replacement: 'server: newest.answering',
    breaks: 'All replicas but one refuse what the writer sends.',
  },
  {
    name: 'shared/rows-in-a-session',
    file: WRITER,
    search: 'new StagedStore({ ...common, ownership, carried })',
    replacement: 'new StagedStore({ ...common, ownership })',
    breaks: 'The next statement of a batch does not find the rows that the one before has staged at another replica.',
  },
  {
    name: 'shared/rows-not-replaced',
    file: CARRIED,
    search: "if (step.does === 'replace') this.#tables.delete(step.table.name);",
    replacement: '',
    breaks: 'Repeats that were dropped are stored.',
  },
  {
    name: 'shared/found-repeats-overlooked',
    file: CARRIED,
    search: 'return (await this.#run(statement, parameters)) !== 0;',
    replacement: 'return (await this.#run(statement, parameters)) === undefined;',
    breaks: 'Events that are stored already are stored again.',
  },
  {
    name: 'shared/loaded-rows-not-counted',
    file: CARRIED,
    search: 'return rowsOf(blocks);',
    replacement: 'return undefined;',
    breaks: 'A row that cannot be stored is left out, and is no dead letter.',
  },
  {
    name: 'shared/attempts-share-an-id',
    file: BATCH,
    search: 'const attempt = randomUUID();',
    replacement: "const attempt = '00000000-0000-4000-8000-000000000000';",
    breaks: 'Once one batch has ended, all others are refused.',
  },
  {
    name: 'shared/unknown-replicas-never-recorded',
    file: SHARED,
    search: 'if (come.length > 0) await this.#record(come, false, signal);',
    replacement: '',
    breaks: 'No replica may store anything.',
  },
];
