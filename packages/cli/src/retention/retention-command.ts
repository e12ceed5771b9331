import { atServer } from '@sluice/servers/state/connected-server';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { clickHouseEnv } from '@sluice/shared/config';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { ALL_OTHERS, BEFORE_EVENTS_MS, keptFromMs, retentionDays } from '@sluice/shared/config/retention-days';
import { workspaceName } from '@sluice/shared/keys/keys-file';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { printable } from '@sluice/shared/text/printable';
import { readRetention, recordRetention } from '@sluice/storage/clickhouse/retention-settings';
import { z } from 'zod';
import type { Command } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { parseCommand } from '../command/parse-command.ts';
import { inColumns, processTerminal, type Terminal } from '../command/terminal.ts';
import { unreachable } from '../command/unreachable.ts';
import { loadServersOf } from '../servers/chosen-server.ts';

/** How many workspaces may have a retention of their own: statements name all of them. */
const OWN_MAX = 1_000;

const APPLICATION = 'sluice-retention-command';

/** Sets for how many days the events of a workspace are kept, with the environment of a writer. */
export const retentionCommand: Command = {
  help,
  async run(args, { env }) {
    const parsed = parse(args);
    const schema = z.object({ ...clickHouseEnv, ...serverEnv });
    const configs = loadServersOf(schema, await withLocalSystem(env), parsed.server);
    await using connections = new AsyncDisposableStack();
    const servers = configs.map(({ config, server }) => {
      const options = { application: APPLICATION, requestTimeoutMs: 60_000, connectionsMax: 1 };
      const client = connections.adopt(createClickHouse(config, options), (created) => created.close());
      return { name: configs.length > 1 ? server?.name : undefined, settings: new RetentionSettings(client) };
    });
    try {
      return await runRetentionCommand(parsed, servers, processTerminal, Date.now());
    } catch (error) {
      const { type, message } = error as { readonly type?: string; readonly message: string };
      // An error of ClickHouse has a type: it was reached.
      const isReached = type !== undefined || error instanceof PartlySet;
      if (isReached) console.error(error instanceof PartlySet ? message : `Nothing was set: ${printable(message)}`);
      else console.error(unreachable('ClickHouse', error, configs.length > 1 ? undefined : configs[0]?.config));
      return 1;
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
    --server NAME               on one ClickHouse server only. Default: on all of CLICKHOUSE_SERVERS_FILE; if one of them
                                does not answer, nothing is set. Where they differ, queries use the shortest

Exit codes: 0 done, 1 not done, 2 wrong arguments.`;
}

const USAGE = 'Use list, set WORKSPACE DAYS or clear WORKSPACE.';

export type RetentionArguments = {
  /** Empty: all servers. */
  readonly server: string;
} & (
  | { readonly command: 'list' }
  | {
      readonly command: 'set' | 'clear';
      readonly workspace: string;
      /** Only of `set`. */
      readonly days: number | undefined;
      readonly yes: boolean;
    }
);

/** A ClickHouse server whose settings are read and set. */
export interface RetentionServer {
  /** Undefined where there is only one. */
  readonly name: string | undefined;
  readonly settings: RetentionSettings;
}

/** Some servers have the new setting, and others not. The message names all of them. */
export class PartlySet extends Error {
  override readonly name = 'PartlySet';
}

/**
 * Runs the command, and returns the exit code.
 *
 * @param nowMs the time in milliseconds since 1970
 * @throws ClickHouse's errors: nothing is set then
 * @throws {PartlySet}
 */
export async function runRetentionCommand(
  args: RetentionArguments,
  servers: readonly RetentionServer[],
  { print, confirm }: Terminal,
  nowMs: number,
): Promise<number> {
  // All of them, before one is set.
  const all = await Promise.all(
    servers.map(async ({ name, settings }) => ({ name, retention: await atServer(name, () => settings.read()) })),
  );
  const retention = shortest(all.map((one) => one.retention));
  if (args.command === 'list') {
    for (const line of inColumns(rowsOf(retention, nowMs))) print(line);
    for (const line of differences(all)) print(line);
    return 0;
  }
  const { command, workspace, days = retention.others, yes } = args;
  if (command === 'clear' && !retention.own.has(workspace)) {
    print(`${workspace} has no retention of its own`);
    return 1;
  }
  if (command === 'set' && all.some((one) => isFull(one.retention, workspace))) {
    print(
      `${OWN_MAX} workspaces have a retention of their own, or had one in the last day, and more are not possible; nothing was set`,
    );
    return 1;
  }
  const before = retention.own.get(workspace) ?? retention.others;
  if (days !== undefined && days < (before ?? Number.POSITIVE_INFINITY)) {
    const toMs = keptFromMs(days, nowMs);
    const fromMs = before === undefined ? undefined : keptFromMs(before, nowMs);
    const found = (await servers[0]?.settings.count(workspace, fromMs, toMs)) ?? 0;
    print(
      `Events of ${workspace} before ${dateOf(toMs)} are no longer returned, and are erased later: ${found} so far.`,
    );
    if (!yes && !(await confirm('Go on? [y/N] '))) {
      print('nothing was set');
      return 1;
    }
  }
  await setOnAll(servers, workspace, command === 'set' ? days : undefined);
  print(`${workspace}: ${textOf(days)}`);
  return 0;
}

/** @throws ClickHouse's error when nothing was set; {PartlySet} */
async function setOnAll(
  servers: readonly RetentionServer[],
  workspace: string,
  days: number | undefined,
): Promise<void> {
  const done: string[] = [];
  for (const { name, settings } of servers) {
    try {
      await atServer(name, () => settings.set(workspace, days));
    } catch (error) {
      if (done.length === 0) throw error;
      const others = servers.map((server) => server.name ?? '').filter((other) => !done.includes(other));
      const value = days === undefined ? 'no retention of its own' : textOf(days);
      throw new PartlySet(
        `${workspace} has ${value} on ${done.join(', ')} now, and not on ${others.join(', ')}: ` +
          `${printable((error as Error).message)}. Queries use the shortest. Run the command again.`,
      );
    }
    done.push(name ?? '');
  }
}

function isFull({ own, named }: Retention, workspace: string): boolean {
  return !own.has(workspace) && named >= OWN_MAX;
}

/** The shortest retention counts where servers differ: an event has expired as soon as it has on any of them. */
function shortest(all: readonly Retention[]): Retention {
  const workspaces = new Set(all.flatMap(({ own }) => [...own.keys()]));
  const own = [...workspaces].sort().map((workspace): [string, number] => {
    const days = all.flatMap((one) => one.own.get(workspace) ?? one.others ?? []);
    return [workspace, Math.min(...days)];
  });
  const others = all.flatMap((one) => one.others ?? []);
  return {
    others: others.length === 0 ? undefined : Math.min(...others),
    own: new Map(own),
    named: Math.max(...all.map(({ named }) => named)),
  };
}

/** Returns a line for each workspace whose retention is not the same on all servers. */
function differences(
  all: readonly { readonly name: string | undefined; readonly retention: Retention }[],
): readonly string[] {
  const workspaces = new Set(all.flatMap(({ retention }) => [...retention.own.keys()]));
  const line = (label: string, daysOf: (retention: Retention) => number | undefined, none: string) => {
    const values = all.map(({ name, retention }) => {
      const days = daysOf(retention);
      return { name, text: days === undefined ? none : textOf(days) };
    });
    if (new Set(values.map(({ text }) => text)).size <= 1) return [];
    return [`${label} differs: ${values.map(({ name, text }) => `${name} ${text}`).join(', ')}`];
  };
  return [
    ...line('(all others)', ({ others }) => others, 'for ever'),
    ...[...workspaces]
      .sort()
      .flatMap((workspace) => line(workspace, ({ own }) => own.get(workspace), 'none of its own')),
  ];
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
  const { command, operands, flags, texts } = parseCommand(args, {
    commands: { list: 'none', set: 'two', clear: 'one' },
    texts: { server: '' },
    flags: ['yes'],
    usage: USAGE,
  });
  const { server } = texts;
  if (command === 'list') return { server, command };
  const [workspace = '', text = ''] = operands;
  const errors: string[] = [];
  const name = workspaceName.safeParse(workspace);
  if (!name.success) errors.push(`WORKSPACE ${name.error.issues[0]?.message}.`);
  const days = retentionDays.safeParse(/^\d+$/.test(text) ? text : Number.NaN);
  if (command === 'set' && !days.success) errors.push(`DAYS ${days.error.issues[0]?.message}.`);
  if (errors.length > 0) throw new ArgumentsError(errors.join(' '));
  return { server, command, workspace, days: command === 'set' ? days.data : undefined, yes: flags.yes };
}

/** For how many days events are kept; `undefined`: for ever. */
interface Retention {
  /** The days of all workspaces that are not named in `own`. */
  readonly others: number | undefined;
  readonly own: ReadonlyMap<string, number>;
  /** How many workspaces statements name: those in `own`, and others whose retention was cleared in the last day. */
  readonly named: number;
}

const DAY_MS = 86_400_000;

const COUNT = `SELECT count() AS found FROM events
  WHERE workspace_id = {workspace:String}
    AND timestamp >= fromUnixTimestamp64Milli({fromMs:Int64}) AND timestamp < fromUnixTimestamp64Milli({toMs:Int64})`;

/** The retention of a deployment, for the operator. All methods throw ClickHouse's errors. */
export class RetentionSettings {
  readonly #client: ClickHouseClient;

  constructor(client: ClickHouseClient) {
    this.#client = client;
  }

  async read(): Promise<Retention> {
    const days = new Map<string, number>();
    let named = 0;
    for (const setting of await readRetention(this.#client)) {
      if (setting.days > 0) days.set(setting.workspace, setting.days);
      if (setting.workspace !== ALL_OTHERS && (setting.days > 0 || setting.ageMs < DAY_MS)) named += 1;
    }
    const others = days.get(ALL_OTHERS);
    days.delete(ALL_OTHERS);
    return { others, own: days, named };
  }

  /** @param days `undefined`: those of all others */
  async set(workspace: string, days: number | undefined): Promise<void> {
    await recordRetention(this.#client, workspace, days);
  }

  /** Returns how many events of a workspace are stored, from a time on and before another, in milliseconds. */
  async count(workspace: string, fromMs = BEFORE_EVENTS_MS, toMs: number): Promise<number> {
    const query_params = { workspace, fromMs, toMs };
    const result = await this.#client.query({ query: COUNT, query_params, format: 'JSONEachRow' });
    const [row] = await result.json<{ found: number }>();
    return row?.found ?? 0;
  }
}
