import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { ArgumentsError } from '@sluice/shared/command-line';
import { clickHouseEnv, loadConfig } from '@sluice/shared/config';
import { keptFromMs, retentionDays } from '@sluice/shared/event-retention';
import { workspaceName } from '@sluice/shared/keys/keys-file';
import { z } from 'zod';
import type { Command } from '../command.ts';
import { withLocalSystem } from '../local-system.ts';
import { parseCommand } from '../parse-command.ts';
import { inColumns, processTerminal, type Terminal } from '../terminal.ts';
import { type Retention, RetentionSettings } from './retention.ts';

/** How many workspaces may have a retention of their own: statements name all of them. */
const OWN_MAX = 1_000;

/** Sets for how many days the events of a workspace are kept, with the environment of a writer. */
export const retentionCommand: Command = {
  help,
  async run(args, { env }) {
    const parsed = parse(args);
    const config = loadConfig(z.object(clickHouseEnv), await withLocalSystem(env));
    const client = createClickHouse(config, {
      application: 'sluice-retention-command',
      requestTimeoutMs: 60_000,
      connectionsMax: 1,
    });
    try {
      return await runRetentionCommand(parsed, new RetentionSettings(client), processTerminal, Date.now());
    } catch (error) {
      const reason = (error as Error).message || (error as NodeJS.ErrnoException).code;
      console.error(`ClickHouse at ${config.CLICKHOUSE_URL} has not done it (${reason}). Is Sluice running there?`);
      return 1;
    } finally {
      await client.close();
    }
  },
};

function help(name: string): string {
  return `Usage: ${name} COMMAND

Sets for how many days the events of a workspace are kept. Events of an older timestamp are no longer returned within two
seconds, and their bytes are erased later: docs/operate/retention.md says when.

  list                          shows for how long events are kept: of each workspace with a retention of its own, and of
                                all others (EVENTS_RETENTION_DAYS of the writers)
  set WORKSPACE DAYS [--yes]    keeps the events of a workspace for 1 to 36500 days, besides today
  clear WORKSPACE [--yes]       keeps them as those of all others again
    --yes                       does not ask for confirmation, which set and clear need to keep events for a shorter time

Exit codes: 0 done, 1 not done, 2 wrong arguments.`;
}

const USAGE = 'Use list, set WORKSPACE DAYS or clear WORKSPACE.';

export type RetentionArguments =
  | { readonly command: 'list' }
  | {
      readonly command: 'set' | 'clear';
      readonly workspace: string;
      /** Only of `set`. */
      readonly days: number | undefined;
      readonly yes: boolean;
    };

/**
 * Runs the command, and returns the exit code.
 *
 * @param nowMs the time in milliseconds since 1970
 * @throws ClickHouse's errors: nothing is set then
 */
export async function runRetentionCommand(
  args: RetentionArguments,
  settings: RetentionSettings,
  { print, confirm }: Terminal,
  nowMs: number,
): Promise<number> {
  const retention = await settings.read();
  if (args.command === 'list') {
    for (const line of inColumns(rowsOf(retention, nowMs))) print(line);
    return 0;
  }
  const { command, workspace, days = retention.others, yes } = args;
  if (command === 'clear' && !retention.own.has(workspace)) {
    print(`${workspace} has no retention of its own`);
    return 1;
  }
  if (command === 'set' && !retention.own.has(workspace) && retention.own.size >= OWN_MAX) {
    print(`${OWN_MAX} workspaces have a retention of their own already, and more are not possible; nothing was set`);
    return 1;
  }
  const before = retention.own.get(workspace) ?? retention.others;
  if (days !== undefined && days < (before ?? Number.POSITIVE_INFINITY)) {
    const toMs = keptFromMs(days, nowMs);
    const fromMs = before === undefined ? undefined : keptFromMs(before, nowMs);
    const found = await settings.count(workspace, fromMs, toMs);
    print(
      `Events of ${workspace} before ${dateOf(toMs)} are no longer returned, and are erased later: ${found} so far.`,
    );
    if (!yes && !(await confirm('Go on? [y/N] '))) {
      print('nothing was set');
      return 1;
    }
  }
  await settings.set(workspace, command === 'set' ? days : undefined);
  print(`${workspace}: ${textOf(days)}`);
  return 0;
}

function rowsOf({ others, own }: Retention, nowMs: number): readonly (readonly string[])[] {
  const row = (workspace: string, days: number | undefined) => [
    workspace,
    textOf(days),
    days === undefined ? '-' : dateOf(keptFromMs(days, nowMs)),
  ];
  const header = ['workspace', 'kept for', 'events from'];
  return [header, row('(all others)', others), ...[...own].map(([workspace, days]) => row(workspace, days))];
}

function textOf(days: number | undefined): string {
  if (days === undefined) return 'for ever';
  return days === 1 ? '1 day' : `${days} days`;
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** @throws {ArgumentsError} that names every error */
export function parse(args: readonly string[]): RetentionArguments {
  const { command, operands, flags } = parseCommand(args, {
    commands: { list: 'none', set: 'two', clear: 'one' },
    texts: {},
    flags: ['yes'],
    usage: USAGE,
  });
  if (command === 'list') return { command };
  const [workspace = '', text = ''] = operands;
  const errors: string[] = [];
  const name = workspaceName.safeParse(workspace);
  if (!name.success) errors.push(`WORKSPACE ${name.error.issues[0]?.message}.`);
  const days = retentionDays.safeParse(/^\d+$/.test(text) ? text : Number.NaN);
  if (command === 'set' && !days.success) errors.push(`DAYS ${days.error.issues[0]?.message}.`);
  if (errors.length > 0) throw new ArgumentsError(errors.join(' '));
  return { command, workspace, days: command === 'set' ? days.data : undefined, yes: flags.yes };
}
