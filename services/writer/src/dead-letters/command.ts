import { ArgumentsError, calledAs, parseArguments } from '@sluice/shared/command-line';
import { printable } from '@sluice/shared/printable';
import type { DeadLetterBox, KeptLetter } from './dead-letter-box.ts';

export const DEAD_LETTERS_HELP = `Usage: ${calledAs('dead-letters')} COMMAND

Rows that could not be stored are kept, byte for byte, with the reason. Once the reason is gone, they can be replayed.

  list [--all] [--limit N]   the newest N (default 100) that were not replayed yet, or with --all also those that were
  show ID                    one letter: where it came from, why it failed, and its row
  replay ID [ID ...]         sends letters to Kafka again; doing so twice changes nothing
  replay --all               all that were not replayed yet

Exit codes: 0 done, 1 a letter was not found, 2 the arguments are wrong.`;

/** How many letters one replay of all takes up at a time. */
const REPLAY_PAGE = 1_000;

/**
 * Does what the arguments say, telling the lines to print; gives the exit code.
 *
 * @throws {ArgumentsError} before anything is done
 */
export async function runDeadLettersCommand(
  args: readonly string[],
  box: DeadLetterBox,
  printLine: (line: string) => void,
): Promise<number> {
  const { command, ids, all, limit } = parse(args);
  if (command === 'help') {
    printLine(DEAD_LETTERS_HELP);
    return 0;
  }
  // Every field of a letter may hold what came from outside, and a terminal obeys what it is told.
  const print = (line: string) => printLine(printable(line));
  if (command === 'list') {
    const letters = await box.list({ limit, replayed: all });
    for (const letter of letters) print(oneLine(letter));
    print(`${letters.length} dead letters${letters.length === limit ? ' (there may be more: --limit)' : ''}`);
    return 0;
  }
  if (command === 'show') return await show(ids[0] as string, box, print);
  return all ? await replayAll(box, print) : await replay(ids, box, print);
}

async function show(id: string, box: DeadLetterBox, print: (line: string) => void): Promise<number> {
  const found = await box.read(id);
  if (!found) return notFound(id, print);
  for (const [name, value] of Object.entries(found.letter)) print(`${name.padEnd(12)} ${value ?? '-'}`);
  print(`row          ${JSON.stringify(found.row.toString())}`);
  return 0;
}

async function replay(ids: readonly string[], box: DeadLetterBox, print: (line: string) => void): Promise<number> {
  let code = 0;
  for (const id of ids) {
    if (await box.replay(id)) print(`${id} replayed`);
    else code = notFound(id, print);
  }
  return code;
}

async function replayAll(box: DeadLetterBox, print: (line: string) => void): Promise<number> {
  // Each is taken up once: one that fails again must not keep the command going for ever.
  const done = new Set<string>();
  for (;;) {
    const letters = await box.list({ limit: REPLAY_PAGE, replayed: false });
    const fresh = letters.filter(({ id }) => !done.has(id));
    if (fresh.length === 0) break;
    for (const { id } of fresh) {
      await box.replay(id);
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

/** Nothing of the row, and the first line of the reason: a list is to be read at a glance. */
function oneLine({ id, recordedAt, replayedAt, kind, topic, partition, offset, line, reason }: KeptLetter): string {
  const state = replayedAt === null ? '' : ` (replayed ${replayedAt})`;
  const why = JSON.stringify(reason.split('\n', 1)[0]?.slice(0, 120));
  return `${id}  ${recordedAt}  ${JSON.stringify(kind)}  ${topic}/${partition}@${offset}:${line}  ${why}${state}`;
}

interface Parsed {
  readonly command: 'help' | 'list' | 'show' | 'replay';
  readonly ids: readonly string[];
  readonly all: boolean;
  readonly limit: number;
}

function parse(args: readonly string[]): Parsed {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      all: { type: 'boolean', default: false },
      limit: { type: 'string', default: '100' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const { all } = values;
  const [command, ...ids] = positionals;
  const limit = Number(values.limit);
  if (values.help) return { command: 'help', ids, all, limit };
  if (!Number.isInteger(limit) || limit < 1) throw new ArgumentsError('--limit must be a whole number from 1.');
  if (command === 'list' && ids.length === 0) return { command, ids, all, limit };
  if (command === 'show' && ids.length === 1 && !all) return { command, ids, all, limit };
  if (command === 'replay' && ids.length > 0 !== all) return { command, ids, all, limit };
  throw new ArgumentsError('One of list, show ID, replay ID [ID ...] and replay --all is needed.');
}
