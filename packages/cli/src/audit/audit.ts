import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { clickHouseEnv, groupEnv, kafkaEnv } from '@sluice/shared/config';
import { ArgumentsError, parseArguments, readArguments } from '@sluice/shared/config/command-line';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { workspaceName } from '@sluice/shared/keys/keys-file';
import { describeRange } from '@sluice/shared/servers/partition-range';
import { areReplicas, type ServerConfig, serverEnv } from '@sluice/shared/servers/server-config';
import { z } from 'zod';
import type { Command } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { interruption, ProgressLines, percentageOf } from '../command/terminal.ts';
import { reasonOf } from '../command/unreachable.ts';
import { loadServersOf } from '../servers/chosen-server.ts';
import { differencesOf, sumOf } from './books.ts';
import type { Share } from './identifiers.ts';
import { jsonOf, linesOf } from './report.ts';
import type { AuditResult } from './result.ts';
import { readAuditsBefore, runAudit } from './run-audit.ts';
import { type AuditBefore, parseTime, type WantedWindow } from './window.ts';
import { WorkFolder } from './work-folder.ts';

const APPLICATION = 'sluice-audit';

/** How long a statement may take, in milliseconds: one of them reads all that is stored of the window. */
const REQUEST_TIMEOUT_MS = 3_600_000;

/** How many megabytes of the log are read in a second. */
const RATE = 25;

const configSchema = z.object({ ...kafkaEnv, ...clickHouseEnv, ...serverEnv, ...groupEnv });

type Server = ServerConfig<typeof configSchema>;

/** Compares Kafka's log with ClickHouse, with the environment of a writer. */
export const auditCommand: Command = {
  help,
  async run(args, { env, cwd }) {
    const nowMs = Date.now();
    const parsed = parse(args, nowMs);
    const local = await withLocalSystem(env);
    const servers = loadServersOf(configSchema, local, parsed.server);
    const replicasOf = areReplicas(local) ? new Map<string, Replicas>() : undefined;
    const signal = interruption();
    const print = parsed.json ? () => undefined : console.log;
    const results: { readonly server: string | undefined; readonly result: AuditResult | undefined }[] = [];
    for (const configured of servers) {
      const name = servers.length > 1 ? configured.server?.name : undefined;
      const range = describeRange(configured.server?.partitions);
      const replicas = replicasOf?.get(range) ?? (replicasOf && { before: undefined, results: [] });
      if (replicas) replicasOf?.set(range, replicas);
      if (name !== undefined) print(`server ${name}`);
      try {
        const parent = resolve(cwd, parsed.work || tmpdir());
        const result = await auditServer(configured, {
          ...parsed,
          parent,
          command: commandOf(args),
          signal,
          nowMs,
          print,
          replicas,
        });
        if (replicas && result) replicas.results.push(result);
        results.push({ server: name, result });
        for (const line of linesOf(result)) print(line);
      } catch (error) {
        if (error instanceof ArgumentsError) throw error;
        if (signal.aborted) console.error('Interrupted: the same command goes on where it was.');
        else console.error(`There is no audit: ${reasonOf(error)}`);
        return signal.aborted ? 130 : 2;
      }
    }
    if (parsed.json) console.log(jsonOf(results));
    return results.some(({ result }) => result && differencesOf(sumOf(result.hours)) > 0) ? 1 : 0;
  },
};

/** What the audits of the replicas of a range have in common: each records in the tables of all. */
interface Replicas {
  /** What was recorded before the first one; undefined before it is read. */
  before: readonly AuditBefore[] | undefined;
  readonly results: AuditResult[];
}

interface ServerOptions extends AuditArguments {
  readonly parent: string;
  readonly command: string;
  readonly signal: AbortSignal;
  readonly nowMs: number;
  readonly print: (line: string) => void;
  readonly replicas: Replicas | undefined;
}

async function auditServer(
  { config, server, replicas: all = [] }: Server,
  options: ServerOptions,
): Promise<AuditResult | undefined> {
  const { parent, print, replicas } = options;
  const { CLICKHOUSE_URL, CLICKHOUSE_DATABASE, KAFKA_GROUP_ID: group } = config;
  const folder = new WorkFolder(parent, [new URL(CLICKHOUSE_URL).host, CLICKHOUSE_DATABASE, group]);
  const client = createClickHouse(config, {
    ...{ application: APPLICATION, requestTimeoutMs: REQUEST_TIMEOUT_MS, connectionsMax: 2 },
  });
  const lines = new ProgressLines(print);
  try {
    if (folder.read(options.command)) print('An audit did not end; this one goes on where it was.');
    if (replicas) replicas.before ??= await readAuditsBefore(client);
    const ofReplicas = replicas && { results: replicas.results, isLast: replicas.results.length + 1 >= all.length };
    return await runAudit({
      ...{ ...options, before: replicas?.before, ofReplicas },
      ...{ client, kafka: createKafka(config, APPLICATION, createLogger(APPLICATION, 'error')) },
      ...{ group, topics: topicNames(config), range: server?.partitions, folder },
      onProgress: (text, done, total) =>
        lines.show(total === undefined ? text : `${percentageOf(done ?? 0, total)} ${text}`),
    });
  } finally {
    folder.release();
    await client.close();
  }
}

/** What decides which rows are looked at. Relative times move, so that they are what was typed. */
function commandOf(args: readonly string[]): string {
  return JSON.stringify(args.filter((arg) => arg !== '--json'));
}

function help(name: string): string {
  return `Usage: ${name} [options]

Reads what Kafka has and what ClickHouse has, and says for each workspace and hour of receipt where every accepted row is:
accepted = stored + repeats + dead letters + deleted + expired + waiting + given up + unknown + missing. It stores nothing but
its result, and can run while everything else does: docs/operate/audit.md.

  --since TIME       looks at what was received since then: 2026-11-30T07:00Z, 2026-11-30, or 7d or 24h for so long ago.
                     Default: up to where the last audit found everything balanced, at most what the log has
  --until TIME       and before then. Default: the last whole hour that has been over for ten minutes
  --workspace NAME   looks at one workspace only
  --share I/N        looks at one of N equal parts of all uuids, users and organizations, such as 1/8
  --rate MB          reads at most so many megabytes of the log in a second (default ${RATE}; 0: as many as possible)
  --work DIR         where its work files are, about 100 bytes for each event. Default: the folder of temporary files
  --server NAME      on one ClickHouse server only. Default: on each of CLICKHOUSE_SERVERS_FILE, one after the other
  --json             prints a JSON document instead, for programs
  --help             this text

The same command goes on with an audit that was interrupted or killed.

Exit codes: 0 balanced, 1 something differs, 2 it could not be done, or wrong arguments, 130 interrupted.`;
}

interface AuditArguments extends WantedWindow, Share {
  readonly workspace: string;
  readonly rate: number;
  /** Empty: the folder of temporary files. */
  readonly work: string;
  /** Empty: all servers. */
  readonly server: string;
  readonly json: boolean;
}

/** @throws {ArgumentsError} that names every error */
export function parse(args: readonly string[], nowMs: number): AuditArguments {
  const text = { type: 'string' } as const;
  const { values } = parseArguments({
    args: [...args],
    options: {
      ...{ since: text, until: text, workspace: text, share: text, rate: text, work: text, server: text },
      json: { type: 'boolean', default: false },
    },
  });
  const { work = '', server = '', json } = values;
  const timeOf = (option: string, value: string | undefined) =>
    value === undefined ? undefined : parseTime(option, value, nowMs);
  const read = readArguments({
    sinceMs: () => timeOf('--since', values.since),
    untilMs: () => timeOf('--until', values.until),
    workspace: () => parseWorkspace(values.workspace),
    share: () => parseShare(values.share ?? '1/1'),
    rate: () => parseRate(values.rate ?? String(RATE)),
  });
  return { ...read, ...read.share, work, server, json };
}

function parseWorkspace(text: string | undefined): string {
  if (text === undefined) return '';
  const parsed = workspaceName.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new ArgumentsError(`--workspace ${parsed.error.issues[0]?.message}.`);
}

function parseShare(text: string): Share {
  const [, share, shares] = (/^(\d{1,4})\/(\d{1,4})$/.exec(text) ?? []).map(Number);
  if (share === undefined || shares === undefined || share < 1 || share > shares) {
    throw new ArgumentsError('--share must be such as 1/8: the first of eight parts.');
  }
  return { share, shares };
}

function parseRate(text: string): number {
  if (/^\d{1,5}(\.\d)?$/.test(text)) return Number(text);
  throw new ArgumentsError('--rate must be a number of megabytes in a second, or 0.');
}
