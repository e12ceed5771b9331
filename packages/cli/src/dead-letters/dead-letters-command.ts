import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { clickHouseEnv, kafkaEnv } from '@sluice/shared/config';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { createKafka } from '@sluice/shared/kafka/client';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { printable } from '@sluice/shared/text/printable';
import { DeadLetters, NotReplayable, type StoredDeadLetter } from '@sluice/storage/dead-letters';
import { nobodyEnv } from '@sluice/submissions/reading/nobody';
import { limitsEnv } from '@sluice/submissions/reading/submission-limits';
import { z } from 'zod';
import type { Command } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { parseCommand } from '../command/parse-command.ts';
import { unreachable } from '../command/unreachable.ts';
import { loadServersOf } from '../servers/chosen-server.ts';
import { type Letters, MirroredDeadLetters } from './mirrored-dead-letters.ts';

/** The environment of the command for dead letters; docs/operate/configuration.md explains each variable. */
export const deadLettersConfig = z.object({ ...kafkaEnv, ...clickHouseEnv, ...serverEnv, ...limitsEnv, ...nobodyEnv });

export type DeadLettersConfig = z.output<typeof deadLettersConfig>;

const APPLICATION = 'sluice-dead-letters';

/** Lists, shows and replays dead letters, with the environment of a writer. */
export const deadLettersCommand: Command = {
  help,
  async run(args, { env }) {
    const parsed = parse(args);
    const configs = loadServersOf(deadLettersConfig, await withLocalSystem(env), parsed.server);
    await using connections = new AsyncDisposableStack();
    const servers = configs.map(({ config, server }) => {
      const options = { application: APPLICATION, requestTimeoutMs: 60_000, connectionsMax: 1 };
      const client = connections.adopt(createClickHouse(config, options), (created) => created.close());
      const kafka = createKafka(config, APPLICATION, createLogger(APPLICATION, 'warn'));
      return { name: server?.name ?? '', deadLetters: new DeadLetters(config, client, kafka) };
    });
    const [only] = servers.length === 1 ? servers : [];
    const mirrored = new MirroredDeadLetters(servers);
    try {
      const code = await runDeadLettersCommand(parsed, only?.deadLetters ?? mirrored, console.log);
      for (const [name, error] of mirrored.away) console.error(describeAway(name, error, parsed.command));
      return mirrored.away.size === 0 ? code : 1;
    } catch (error) {
      if (error instanceof ArgumentsError) throw error;
      console.error(unreachable('The dead letters', error, only && configs[0]?.config));
      return 1;
    }
  },
};

/** Says of a server that has not answered what that means. */
function describeAway(name: string, error: Error, command: DeadLettersArguments['command']): string {
  const { message, code } = error as NodeJS.ErrnoException;
  const meaning =
    command === 'replay'
      ? 'It has no mark of what was replayed; those of the others are enough.'
      : 'What only this server has is not shown.';
  return printable(`${name} did not answer: ${message || code}. ${meaning}`);
}

function help(name: string): string {
  return `Usage: ${name} COMMAND

Dead letters are rows that ClickHouse could not store, and calls that ingest-api could not take. They are kept byte for
byte, with the reason. Replay them once the reason is gone. Calls are read again with EVENT_BYTES_MAX,
PROPERTIES_PER_SUBMISSION_MAX, NOBODY_IDS and NOBODY_IDS_ADDED of this environment.

  list [--all] [--limit N]   the newest N (default 100) that were not replayed yet; with --all also those that were
  show ID                    one dead letter: where it came from, why it failed, and its row
  replay ID [ID ...]         sends rows to Kafka again; doing so twice changes nothing
  replay --all               sends all rows that were not replayed yet
  --server NAME              asks one ClickHouse server only. Default: all of CLICKHOUSE_SERVERS_FILE that answer; a dead
                             letter counts as replayed when any of them says so

What cannot be replayed is named with the reason, and the others go on. A dead letter that fails again, or is recorded
while the command runs, is left for the next time.

Exit codes: 0 done; 1 there is no such dead letter, one was not replayed, or a server did not answer; 2 wrong
arguments.`;
}

/** How many dead letters "replay --all" reads at a time. */
const REPLAY_PAGE = 1_000;

/**
 * Runs the command, gives each line of output to `printLine`, and returns the exit code.
 *
 * @throws kafkajs's and ClickHouse's errors
 */
export async function runDeadLettersCommand(
  { command, ids, all, limit }: DeadLettersArguments,
  deadLetters: Letters,
  printLine: (line: string) => void,
): Promise<number> {
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

async function show(id: string, deadLetters: Letters, print: (line: string) => void): Promise<number> {
  const found = await deadLetters.read(id);
  if (!found) {
    print(unknown(id));
    return 1;
  }
  for (const [name, value] of Object.entries(found.deadLetter)) print(`${name.padEnd(12)} ${value ?? '-'}`);
  print(`row          ${JSON.stringify(found.row.toString())}`);
  return 0;
}

async function replay(ids: readonly string[], deadLetters: Letters, print: (line: string) => void): Promise<number> {
  let code = 0;
  for (const id of ids) {
    const error = await replayOne(id, deadLetters);
    print(error ?? `${id} replayed`);
    if (error !== undefined) code = 1;
  }
  return code;
}

/**
 * Returns why a dead letter was not replayed; `undefined` when it was.
 *
 * @throws when ClickHouse or Kafka does not respond: then no other can be replayed either
 */
async function replayOne(id: string, deadLetters: Letters): Promise<string | undefined> {
  try {
    return (await deadLetters.replay(id)) ? undefined : unknown(id);
  } catch (error) {
    if (error instanceof NotReplayable) return `${id} cannot be taken: ${error.message}`;
    await deadLetters.requireEngines();
    return `${id} was not replayed: ${(error as Error).message}`;
  }
}

async function replayAll(deadLetters: Letters, print: (line: string) => void): Promise<number> {
  let [replayed, failed] = [0, 0];
  // From the newest to older ones: a row that fails again meanwhile is newer, so the command ends.
  let after: StoredDeadLetter | undefined;
  for (;;) {
    const found = await deadLetters.list({ limit: REPLAY_PAGE, replayed: false, after });
    if (found.length === 0) break;
    for (const { id } of found) {
      const error = await replayOne(id, deadLetters);
      if (error === undefined) replayed += 1;
      else {
        failed += 1;
        print(error);
      }
    }
    print(`${replayed} replayed${failed > 0 ? `, ${failed} not` : ''}`);
    after = found.at(-1);
  }
  if (after === undefined) print('nothing to replay');
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

export type DeadLettersArguments = ReturnType<typeof parse>;

/** @throws {ArgumentsError} */
export function parse(args: readonly string[]) {
  const { command, operands, all, texts } = parseCommand(args, {
    commands: { list: 'none, or --all', show: 'one', replay: 'some, or --all' },
    texts: { limit: '100', server: '' },
    flags: [],
    usage: 'Use list, show ID, replay ID [ID ...] or replay --all.',
  });
  const limit = Number(texts.limit);
  if (!Number.isInteger(limit) || limit < 1) throw new ArgumentsError('--limit must be a whole number from 1.');
  return { command, ids: operands, all, limit, server: texts.server };
}
