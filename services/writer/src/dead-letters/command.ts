import { ArgumentsError } from '@sluice/shared/command-line';
import { printable } from '@sluice/shared/printable';
import { parseCommand } from '../operator/parse-command.ts';
import type { DeadLetters, StoredDeadLetter } from './dead-letters.ts';

export const DEAD_LETTERS_HELP = `Usage: npm run dead-letters -- COMMAND

Dead letters are rows that ClickHouse could not store. They are kept byte for byte, with the reason. Replay them once the
reason is gone.

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
  if (!found) return notFound(id, print);
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
    if (await deadLetters.replay(id)) print(`${id} replayed`);
    else code = notFound(id, print);
  }
  return code;
}

async function replayAll(deadLetters: DeadLetters, print: (line: string) => void): Promise<number> {
  // Each is replayed once: a row that fails again must not keep the command running for ever.
  const done = new Set<string>();
  for (;;) {
    const found = await deadLetters.list({ limit: REPLAY_PAGE, replayed: false });
    const fresh = found.filter(({ id }) => !done.has(id));
    if (fresh.length === 0) break;
    for (const { id } of fresh) {
      await deadLetters.replay(id);
      done.add(id);
    }
    print(`${done.size} replayed`);
  }
  if (done.size === 0) print('nothing to replay');
  return 0;
}

function notFound(id: string, print: (line: string) => void): number {
  print(`${id} is not a dead letter`);
  return 1;
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
