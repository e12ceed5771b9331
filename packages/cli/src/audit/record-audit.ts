import manifest from '../../package.json' with { type: 'json' };
import { type Hour, NO_COUNTS, sumOf, withoutBetter } from './books.ts';
import type { Database } from './database.ts';
import type { Selection } from './intake.ts';
import type { AuditResult } from './result.ts';

/** How many rows are sent with one INSERT. */
const INSERTED_MAX = 10_000;

interface Started extends Selection {
  readonly id: string;
  readonly startedMs: number;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Records that an audit begins. @throws ClickHouse's errors */
export async function recordStart(database: Database, started: Started): Promise<void> {
  const nothing = { accepted: 0, missing: 0, invented: 0, duplicates: 0, notes: [] };
  await record(database, started, { ...nothing, balanced: started.sinceMs / 1_000, finished: false });
}

/**
 * Records the result of an audit; its books, where it is of all rows.
 *
 * @param replicas what the same audit has found at other replicas, which have these tables in common
 * @param throughMsMax up to when it may say that everything is balanced
 * @throws ClickHouse's errors
 */
export async function recordResult(
  database: Database,
  result: AuditResult,
  replicas: readonly AuditResult[],
  throughMsMax: number,
): Promise<void> {
  const { id, differences, notes, hours, shares } = result;
  const toSeconds = (micros: number) => Math.floor(micros / 3_600_000_000) * 3_600;
  await database.insert(
    'audit_differences',
    differences.map(({ workspace, received, ...difference }) => ({
      ...{ audit_id: id, workspace_id: workspace, hour: toSeconds(received) },
      ...difference,
    })),
  );
  if (shares === 1) await recordHours(database, result, replicas);
  const { accepted, missing, invented, duplicates } = sumOf(hours);
  const counts = { accepted, missing, invented, duplicates, notes };
  const balancedMs = Math.min(throughMsMax, ...[result, ...replicas].map(({ balancedThroughMs }) => balancedThroughMs));
  await record(database, result, { ...counts, balanced: balancedMs / 1_000, finished: true });
}

async function recordHours(database: Database, result: AuditResult, replicas: readonly AuditResult[]): Promise<void> {
  const { id, hours, sinceMs, untilMs, workspace } = result;
  const window = { since: sinceMs / 1_000, until: untilMs / 1_000 };
  type Before = { readonly workspace: string; readonly began: number; readonly of_kind: string };
  const before = await database.read<Before>('audited-before', { ...window, workspace });
  const known = new Set(hours.map(({ workspace: name, hour, kind }) => `${hour}/${kind}/${name}`));
  // What an audit before found, such as invented rows, is gone.
  const gone = before.filter(({ workspace: name, began, of_kind }) => !known.has(`${began}/${of_kind}/${name}`));
  const empty = gone.map(
    ({ workspace: name, began, of_kind }): Hour => ({
      ...{ workspace: name, hour: began, kind: of_kind as Hour['kind'], counts: NO_COUNTS },
    }),
  );
  const counted = withoutBetter(
    [...hours, ...empty],
    replicas.flatMap((replica) => replica.hours),
  );
  const rows = counted.map(({ workspace: name, hour, kind, counts }) => ({
    workspace_id: name,
    hour,
    kind,
    ...counts,
  }));
  for (let from = 0; from < rows.length; from += INSERTED_MAX) {
    const some = rows.slice(from, from + INSERTED_MAX);
    await database.insert(
      'audited_hours',
      some.map((row) => ({ ...row, audit_id: id })),
    );
  }
}

interface Outcome {
  readonly accepted: number;
  readonly missing: number;
  readonly invented: number;
  readonly duplicates: number;
  readonly notes: readonly string[];
  readonly balanced: number;
  readonly finished: boolean;
}

async function record(database: Database, audit: Started, outcome: Outcome): Promise<void> {
  const { id, startedMs, sinceMs, untilMs, workspace, share, shares } = audit;
  await database.run('record-audit', {
    ...{ id, startedMs, since: sinceMs / 1_000, until: untilMs / 1_000, workspace, share, shares },
    ...{ version: manifest.version, ...outcome },
  });
}
