import { ALL_OTHERS, keptFromMs } from '@sluice/shared/config/retention-days';
import type { PolledServer } from './polled-server.ts';

/**
 * Returns from which time on events of a workspace are shown, in milliseconds since 1970; undefined: all. An event has expired
 * as soon as it has on any server: it must not come back when another one is read.
 */
export function keptFromOf(servers: readonly PolledServer[], workspace: string): number | undefined {
  const days = servers.flatMap(({ lastState }) => {
    const own = lastState?.retentionDays.get(workspace) ?? lastState?.retentionDays.get(ALL_OTHERS);
    return own === undefined ? [] : [own];
  });
  return days.length === 0 ? undefined : keptFromMs(Math.min(...days), Date.now());
}
