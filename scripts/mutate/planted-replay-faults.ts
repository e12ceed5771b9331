import type { PlantedFault } from './planted-fault.ts';

const DEAD_LETTERS = 'packages/storage/src/dead-letters.ts';
const REPLAYED_CALL = 'packages/submissions/src/calls/replay-call.ts';

/** Faults of the replay of dead letters that prove the simulator of the pipeline: it has to find each of them within a minute. */
export const PLANTED_REPLAY_FAULTS: readonly PlantedFault[] = [
  {
    name: 'pipeline/marked-before-it-is-sent',
    file: DEAD_LETTERS,
    search: '    await this.send(found, changedCall);\n    await this.markReplayed(found);',
    replacement: '    await this.markReplayed(found);\n    await this.send(found, changedCall);',
    breaks: 'A dead letter counts as replayed, and nothing was sent.',
  },
  {
    name: 'pipeline/uuid-of-the-replay',
    file: REPLAYED_CALL,
    search: 'idempotencyKey: id,',
    replacement: 'idempotencyKey: crypto.randomUUID(),',
    breaks: 'A call without a messageId is stored again with each replay.',
  },
  {
    name: 'pipeline/received-when-replayed',
    file: REPLAYED_CALL,
    search: 'versions: () => version,',
    replacement: 'versions: () => limits.now() * 1_000,',
    breaks: 'The deletion of a user does not hide a call from before it that is replayed after it.',
  },
  {
    name: 'pipeline/rejected-call-in-place-of-the-changed',
    file: DEAD_LETTERS,
    search: 'return { ...rejected, call };',
    replacement: 'return { ...rejected, call: rejected.call || call };',
    breaks: 'A call that was changed is sent as it was rejected.',
  },
];
