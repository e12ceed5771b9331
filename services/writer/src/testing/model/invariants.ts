import { identityOf } from './clickhouse-statements.ts';
import type { Rules } from './rules.ts';
import { eventsOf, isHidden, type World } from './world.ts';

/** Returns what is wrong although it must never be, not even for a moment. */
export function findViolation(world: World, rules: Rules): string | undefined {
  if (world.broken) return world.broken;
  const stamped = new Set<string>();
  const identities = new Set<string>();
  for (const { row } of eventsOf(rules, world.stored)) {
    const user = rules.users.indexOf(row.user);
    if (row.at <= (world.erased[user] as number)) return `${row.key} shows though its user was deleted`;
    if (isHidden(world, rules, row)) continue;
    if (identities.has(identityOf(row)) || stamped.has(row.key)) return `${row.key} is stored twice`;
    identities.add(identityOf(row));
    if (row.stamped) stamped.add(row.key);
    if (row.time > (world.seen[user] as number)) return `${row.key} is stored before its user is seen`;
  }
  return undefined;
}

/** Returns whether nothing is left to do. */
export function isFinished(world: World, { scenario }: Rules): boolean {
  return (
    world.statements.length === 0 &&
    world.cut !== 'short' &&
    world.logs.every((log, partition) => {
      if (world.alarmed[partition]) return scenario.cut?.resumesAt === 'never';
      const position = world.positions[partition];
      const next = position?.last === null ? position.next : world.committed[partition];
      return next === log.length;
    })
  );
}

/** Returns what is missing although nothing is left to do. */
export function findLoss(world: World, rules: Rules): string | undefined {
  const visible = eventsOf(rules, world.stored).filter(({ row }) => !isHidden(world, rules, row));
  const identities = new Set(visible.map(({ row }) => identityOf(row)));
  const keys = new Set(visible.map(({ row }) => row.key));
  const deleted = new Set<string>();
  const set = new Map<string, number>();
  const needed = world.logs.flatMap((log, partition) => {
    if (world.alarmed[partition]) return [];
    return partition === 0 ? log.slice(world.givenUp) : log;
  });
  for (const id of needed) {
    const row = rules.rows[id];
    if (row?.kind === 'poison' && !world.deadLetters.includes(id)) return `${row.key} is not kept`;
    if (row?.kind === 'deletion') {
      deleted.add(row.user);
      if ((world.deletions[rules.users.indexOf(row.user)] as number) < row.at) return 'a deletion is lost';
    }
    if (row?.kind === 'set') set.set(row.user, Math.max(row.at, set.get(row.user) ?? -1));
    if (row?.kind !== 'event' || isHidden(world, rules, row)) continue;
    if (!(row.stamped ? keys.has(row.key) : identities.has(identityOf(row)))) return `${row.key} is lost`;
  }
  for (const [user, name] of rules.users.entries()) {
    const at = set.get(name) ?? -1;
    if (at > (world.deletions[user] as number) && world.properties[user] !== at) return 'a property is lost';
    const times = visible.filter(({ row }) => row.user === name).map(({ row }) => row.time);
    if (!deleted.has(name) && world.seen[user] !== Math.max(-1, ...times)) {
      return `${name} was seen at a time of which there is no event`;
    }
  }
  return undefined;
}
