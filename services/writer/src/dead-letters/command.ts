import { ArgumentsError, calledAs } from '@sluice/shared/command-line';
import { printable } from '@sluice/shared/printable';
import { parseCommand } from '../operator/parse-command.ts';
import { type DeadLetters, NotReplayable, type StoredDeadLetter } from './dead-letters.ts';

export const DEAD_LETTERS_HELP = `Usage: ${calledAs('dead-letters')} COMMAND

Dead letters are rows that ClickHouse could not store, and calls that ingest-api could not take. They are kept byte for
byte, with the reason. Replay them once the reason is gone. Calls are read again with EVENT_BYTES_MAX and
PROPERTIES_PER_SUBMISSION_MAX of this environment.

  list [--all] [--limit N]   the newest N (default 100) that were not replayed yet; with --all also those that were
  show ID                    one dead letter: where it came from, why it failed, and its row
  replay ID [ID ...]         sends rows to Kafka again; doing so twice changes nothing
  replay --all               sends all rows that were not replayed yet

Exit codes: 0 done, 1 there is no such dead letter, 2 wrong arguments.`;

/** How many dead letters "replay --all" reads at a time. */
const REPLAY_PAGE = 1_000;

/**
 * Runs the command, passes each line of output to `printLine`, and returns the exit code.
 *
 * @throws {ArgumentsError} before anything is done
 * @throws kafkajs's and ClickHouse's errors
 */
export async function runDeadLettersCommand(
  args: readonly string[],
  deadLetters: DeadLetters,
  printLine: (line: string) => void,
): Promise<number> {
  const { command, ids, all, limit } = parse(args);
  if (command === 'help') {
    printLine(DEAD_LETTERS_HELP);
    return 0;
  }
  // Any field of a dead letter may hold text from outside, and a terminal obeys control characters.
  const print = (line: string) => printLine(printable(line));
  if (command === 'list') {
    const found = await deadLetters.list({ limit, replayed: all });
    for (const deadLetter of found) print(oneLine(deadLetter));
    print(`${found.length} dead letters${found.length === limit ? ' (there may be more: --limit)' : ''}`);
    return 0;
  }
  if (command === 'show') return await show(ids[0] as string, deadLetters, print);
  return all ? await replayAll(deadLetters, print) : await replay(ids, deadLetters, print);
}

async function show(id: string, deadLetters: DeadLetters, print: (line: string) => void): Promise<number> {
  const found = await deadLetters.read(id);
  if (!found) {
    print(unknown(id));
    return 1;
  }
  for (const [name, value] of Object.entries(found.deadLetter)) print(`${name.padEnd(12)} ${value ?? '-'}`);
  print(`row          ${JSON.stringify(found.row.toString())}`);
  return 0;
}

async function replay(
  ids: readonly string[],
  deadLetters: DeadLetters,
  print: (line: string) => void,
): Promise<number> {
  let code = 0;
  for (const id of ids) {
    const fault = await replayOne(id, deadLetters);
    print(fault ?? `${id} replayed`);
    if (fault !== undefined) code = 1;
  }
  return code;
}

/** Returns why a dead letter was not replayed; `undefined` when it was. */
async function replayOne(id: string, deadLetters: DeadLetters): Promise<string | undefined> {
  try {
    return (await deadLetters.replay(id)) ? undefined : unknown(id);
  } catch (error) {
    if (!(error instanceof NotReplayable)) throw error;
    return `${id} cannot be taken: ${error.message}`;
  }
}

async function replayAll(deadLetters: DeadLetters, print: (line: string) => void): Promise<number> {
  // Each is replayed once: a row that fails again must not keep the command running for ever.
  const done = new Set<string>();
  let failed = 0;
  for (;;) {
    const found = await deadLetters.list({ limit: REPLAY_PAGE + failed, replayed: false });
    const fresh = found.filter(({ id }) => !done.has(id));
    if (fresh.length === 0) break;
    for (const { id } of fresh) {
      const fault = await replayOne(id, deadLetters);
      if (fault !== undefined) print(fault);
      if (fault !== undefined) failed += 1;
      done.add(id);
    }
    print(`${done.size - failed} replayed`);
  }
  if (done.size === 0) print('nothing to replay');
  return failed === 0 ? 0 : 1;
}

function unknown(id: string): string {
  return `${id} is not a dead letter`;
}

/** Returns one line without the row, and with the first line of the reason. */
function oneLine({
  id,
  recordedAt,
  replayedAt,
  kind,
  topic,
  partition,
  offset,
  line,
  reason,
}: StoredDeadLetter): string {
  const state = replayedAt === null ? '' : ` (replayed ${replayedAt})`;
  const why = JSON.stringify(reason.split('\n', 1)[0]?.slice(0, 120));
  return `${id}  ${recordedAt}  ${JSON.stringify(kind)}  ${topic}/${partition}@${offset}:${line}  ${why}${state}`;
}

function parse(args: readonly string[]) {
  const { command, operands, all, texts } = parseCommand(args, {
    commands: { list: 'none, or --all', show: 'one', replay: 'some, or --all' },
    texts: { limit: '100' },
    flags: [],
    usage: 'Use list, show ID, replay ID [ID ...] or replay --all.',
  });
  const limit = Number(texts.limit);
  if (command !== 'help' && (!Number.isInteger(limit) || limit < 1)) {
    throw new ArgumentsError('--limit must be a whole number from 1.');
  }
  return { command, ids: operands, all, limit };
}
