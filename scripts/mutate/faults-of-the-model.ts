import type { PlantedFault } from './planted-faults.ts';

const writer = (name: string) => `services/writer/src/${name}`;

/** What the model of the protocol was known to find. The simulator took its place. */
export const OF_THE_MODEL: readonly PlantedFault[] = [
  {
    name: 'model/stored-events-not-looked-up',
    file: writer('clickhouse/staged-batch.ts'),
    search: 'const hasOriginals = hasKeys || hasUuids;',
    replacement: 'const hasOriginals = hasKeys && !hasKeys && hasUuids;',
    breaks: 'A batch that is stored again after a lost response is stored twice.',
  },
  {
    name: 'model/older-statements-not-ended',
    file: writer('protocol/steps.ts'),
    search: "['record-epoch', 'end-older-statements']",
    replacement: "['record-epoch']",
    breaks: 'An insert of the former owner goes on beside those of the next one.',
  },
  {
    name: 'model/epoch-not-compared',
    file: writer('clickhouse/staged-batch.ts'),
    search: '{ group: groupId, ...epoch }, settings',
    replacement: '{ group: groupId, incarnation: 1_000, generation: 0 }, settings',
    breaks: 'An insert of the former owner begins beside those of the next one.',
  },
  {
    name: 'model/own-statements-not-ended',
    file: writer('loop/batch-loop.ts'),
    search: 'await keepTrying(() => staged.end(), piece.length, signal);',
    replacement: '',
    breaks: 'After an unclear failure the rows are stored again while the first attempt may still be running.',
  },
  {
    name: 'model/deletions-stored-before-they-are-loaded',
    file: writer('protocol/steps.ts'),
    search: "  'load-changes',\n  'store-deletions',\n",
    replacement: "  'store-deletions',\n  'load-changes',\n",
    breaks: 'There is nothing to store yet.',
  },
  {
    name: 'model/repeats-found-before-deletions-are-stored',
    file: writer('protocol/steps.ts'),
    search:
      "  'store-deletions',\n  'store-properties',\n  'store-sightings',\n  'store-seen-in-changes',\n  'find-repeats',\n",
    replacement:
      "  'find-repeats',\n  'store-deletions',\n  'store-properties',\n  'store-sightings',\n  'store-seen-in-changes',\n",
    breaks: 'An event that is sent again after the deletion of its user counts as a repeat of the hidden one.',
  },
  {
    name: 'model/events-stored-before-repeats-are-found',
    file: writer('protocol/steps.ts'),
    search: "  'find-repeats',\n  'store-seen-in-events',\n  'store-events',\n",
    replacement: "  'store-events',\n  'find-repeats',\n  'store-seen-in-events',\n",
    breaks: 'Repeats are stored.',
  },
  {
    name: 'model/session-closed-before-events-are-stored',
    file: writer('protocol/steps.ts'),
    search: "  'store-events',\n  'close-session',\n",
    replacement: "  'close-session',\n  'store-events',\n",
    breaks: 'The staged rows are gone.',
  },
  {
    name: 'model/commit-comes-first',
    file: writer('kafka/store-and-commit.ts'),
    search: '  const storing = store();\n',
    replacement: '  await commits.commit(batch, commitOffsetsIfNecessary);\n  const storing = store();\n',
    breaks: 'A crash between the two loses the batch.',
  },
  {
    name: 'model/commit-without-events',
    file: writer('clickhouse/staged-batch.ts'),
    search: 'return await this.#storeEvents();',
    replacement: 'return;',
    breaks: 'Events are committed that are not stored.',
  },
  {
    name: 'model/deleted-event-counts-as-original',
    file: writer('clickhouse/staged-batch.ts'),
    search: "if (hasOriginals) await this.#staging.run(STATEMENTS['drop-hidden-originals']);",
    replacement: '',
    breaks: 'An event that is sent again after the deletion of its user is lost.',
  },
  {
    name: 'model/record-before-the-position-not-read',
    file: writer('kafka/inspect-partitions.ts'),
    search: 'return { ...compared, position: await withLastRecord(admin, partition, compared.position, bounds) };',
    replacement: 'return compared;',
    breaks: 'A log that is cut off after a writer has ended between storing and committing is read on.',
  },
  {
    name: 'model/positions-stored-after-the-commit',
    file: writer('loop/batch-loop.ts'),
    search: 'await keepTrying(() => positions.store(positionsAfter(messages), epoch), messages.length, signal);',
    replacement:
      'keepTrying(() => positions.store(positionsAfter(messages), epoch), messages.length, signal).catch(() => undefined);',
    breaks: 'A crash between the two leaves a position behind the committed offset.',
  },
  {
    name: 'model/one-halt-halts-all',
    file: writer('loop/partition-keeper.ts'),
    search: '    stopStoring(assignment, consumer, { topic, partition });\n    if (assignment.epoch)',
    replacement:
      '    for (const other of partitionsOf(assignment)) stopStoring(assignment, consumer, other);\n    if (assignment.epoch)',
    breaks: 'One partition that is halted stops all others of its writer.',
  },
  {
    name: 'model/take-over-swapped',
    file: writer('protocol/steps.ts'),
    search: "['record-epoch', 'end-older-statements']",
    replacement: "['end-older-statements', 'record-epoch']",
    breaks: 'An older insert that begins between the two steps of a take-over runs beside the new owner.',
  },
];
