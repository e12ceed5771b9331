import type { Admin } from 'kafkajs';
import type { DeletedPersons } from './deleted-persons.ts';
import { Intake, type IntakeOptions, type Selection, Workspaces } from './intake.ts';
import { readLog } from './log-reader.ts';
import type { Pace } from './pace.ts';
import { CHANGE_BYTES, EVENT_BYTES } from './records.ts';
import { Slices } from './slices.ts';
import { MARGIN_MS } from './window.ts';
import type { AuditState, WorkFolder } from './work-folder.ts';

/** How many slices there are: of 10 million events, one has 80,000. */
export const SLICES = 128;

/** How often it is written down how far the reading is, in milliseconds. */
const CHECKPOINT_MS = 5_000;

export const NO_LENGTHS: readonly number[] = Array.from({ length: SLICES }, () => 0);

/** What was read of the log. */
export interface ReadRows {
  readonly events: Slices;
  readonly changes: Slices;
  readonly workspaces: Workspaces;
}

export interface ReadLogOptions extends Selection {
  readonly admin: Admin;
  readonly folder: WorkFolder;
  readonly state: AuditState;
  readonly deleted: DeletedPersons;
  readonly pace: Pace;
  /** Called with the number of messages that were read, and of all. */
  readonly onProgress: (done: number, total: number) => void;
}

/**
 * Reads the pieces of the log into slices, from where the state says. When it ends before, the state says how far it came.
 *
 * @throws {RangeError} when the files are not those of the state
 * @throws {LogIsGone}
 * @throws kafkajs's errors
 */
export async function readPieces(options: ReadLogOptions): Promise<ReadRows> {
  const { admin, folder, state, deleted, pace, onProgress } = options;
  const events = new Slices(folder.path, 'events', EVENT_BYTES, state.eventLengths);
  const changes = new Slices(folder.path, 'changes', CHANGE_BYTES, state.changeLengths);
  const workspaces = new Workspaces(state.workspaces);
  const intake = new Intake({ ...intakeOf(options), events, changes, workspaces, deleted });
  const total = sumOf(state, ({ from, to }) => Number(to) - Number(from));
  const checkpoint = () => {
    [state.eventLengths, state.changeLengths] = [events.flush(), changes.flush()];
    state.workspaces = workspaces.names;
    folder.write(state);
  };
  let writtenAt = performance.now();
  try {
    for (const piece of state.pieces) {
      const { role, topic, partition } = piece;
      const rest = { topic, partition, from: BigInt(piece.next), to: BigInt(piece.to) };
      for await (const messages of readLog(admin, rest, pace)) {
        for (const message of messages) intake.take(role, partition, message);
        piece.next = String(BigInt(messages.at(-1)?.offset ?? piece.next) + 1n);
        onProgress(
          sumOf(state, ({ from, next }) => Number(next) - Number(from)),
          total,
        );
        if (performance.now() - writtenAt < CHECKPOINT_MS) continue;
        checkpoint();
        writtenAt = performance.now();
      }
      piece.next = piece.to;
    }
  } finally {
    checkpoint();
  }
  return { events, changes, workspaces };
}

/** Which rows are read. */
export function intakeOf({ workspace, share, shares, state }: Pick<ReadLogOptions, keyof Selection | 'state'>) {
  const { sinceMs, untilMs } = state;
  const times = { from: (sinceMs - MARGIN_MS) * 1_000, to: (untilMs + MARGIN_MS) * 1_000 };
  return { workspace, share, shares, slices: SLICES, ...times } satisfies Partial<IntakeOptions>;
}

function sumOf({ pieces }: AuditState, countOf: (piece: AuditState['pieces'][number]) => number): number {
  return pieces.reduce((sum, piece) => sum + countOf(piece), 0);
}
