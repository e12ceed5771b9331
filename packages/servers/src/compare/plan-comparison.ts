import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { Refused } from '@sluice/shared/config/command-line';
import { ALL_OTHERS, BEFORE_EVENTS_MS, keptFromMs } from '@sluice/shared/config/retention-days';
import type { Identity } from '@sluice/storage/clickhouse/identity';
import type { ConfiguredServer } from '../state/connected-server.ts';
import { type DatabaseState, isKnown, stateOrReason } from '../state/database-state.ts';
import { differentRanges, sharedDatabases, unfitReasons } from '../state/problems.ts';
import type { Cut } from './compared-tables.ts';
import type { Both } from './different-keys.ts';

/**
 * By how much the last moment that is compared is before the log time of both servers, in milliseconds. An event gets its time
 * when it is received, and waits until Kafka has it: PRODUCE_TIMEOUT_MS, ten seconds, at most. Clocks may differ.
 */
const MARGIN_MS = 30_000;

/** Rejected calls expire 30 days after a server has stored them, which is later than they were received. */
const REJECTED_MS = 29 * 86_400_000;

export interface ComparisonPlan {
  readonly identities: Both<Identity>;
  readonly states: Both<DatabaseState>;
  readonly cut: Cut;
}

/**
 * Checks whether two servers can be compared.
 *
 * @throws {Refused} naming every reason why not
 */
export async function planComparison(
  servers: Both<ConfiguredServer>,
  clients: Both<ClickHouseClient>,
): Promise<ComparisonPlan> {
  const [one, other] = await Promise.all([
    stateOrReason(servers[0].server.name, clients[0]),
    stateOrReason(servers[1].server.name, clients[1]),
  ]);
  const reasons = [...reasonsOf(servers[0], one), ...reasonsOf(servers[1], other)];
  reasons.push(...differentRanges(servers[0].server, servers[1].server));
  if (!isKnown(one) || !isKnown(other)) throw new Refused(reasons.join('\n'));
  reasons.push(
    ...sharedDatabases([
      { name: servers[0].server.name, state: one },
      { name: servers[1].server.name, state: other },
    ]),
  );
  if (!one.identity || !other.identity || !one.progress || !other.progress || reasons.length > 0) {
    throw new Refused(reasons.join('\n'));
  }
  const throughMs = Math.min(one.progress.throughMs, other.progress.throughMs);
  return {
    identities: [one.identity, other.identity],
    states: [one, other],
    cut: {
      until: (throughMs - MARGIN_MS) * 1_000,
      ...keptFrom([one.retention, other.retention]),
      rejectedFrom: (Date.now() - REJECTED_MS) * 1_000,
    },
  };
}

function reasonsOf(configured: ConfiguredServer, state: DatabaseState | string): string[] {
  const reasons = unfitReasons(configured.server, state, 'compare complete servers.');
  if (isKnown(state) && state.identity && !state.progress) {
    reasons.push(`${configured.server.name}: its writers have not recorded how far they are.`);
  }
  return reasons;
}

/** The shortest retention that one of both has. */
function keptFrom(retentions: Both<DatabaseState['retention']>) {
  const now = Date.now();
  const fromOf = (workspace: string) =>
    Math.max(
      ...retentions.map((days) => {
        const kept = days.get(workspace) ?? days.get(ALL_OTHERS);
        return kept === undefined ? BEFORE_EVENTS_MS : keptFromMs(kept, now);
      }),
    );
  const workspaces = [...new Set(retentions.flatMap((days) => [...days.keys()]))].filter((name) => name !== ALL_OTHERS);
  return { workspaces, keptFromMs: workspaces.map(fromOf), othersKeptFromMs: fromOf(ALL_OTHERS) };
}
