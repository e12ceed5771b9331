import { describeRange, distinctRanges, type Ranged } from '@sluice/shared/servers/partition-range';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { Identity } from '@sluice/storage/clickhouse/identity';
import type { DatabaseOwner } from '@sluice/storage/clickhouse/own-database';
import { ownerOf } from './connected-server.ts';
import { type DatabaseState, isKnown } from './database-state.ts';

/** A server of the file with what its database says. */
export interface KnownServer {
  readonly name: string;
  readonly state: DatabaseState;
}

/** Returns why a database is not that of a server, each reason in a sentence. */
export function ownerErrors(owner: DatabaseOwner, identity: Identity | undefined): string[] {
  if (!identity) return [];
  const errors: string[] = [];
  const { server, group, partitions } = owner;
  if (identity.server !== '' && identity.server !== server) {
    errors.push(`${server}: the database at this address is that of the server ${identity.server}.`);
  }
  if (identity.groupId !== group) {
    errors.push(`${server}: the database belongs to the group ${identity.groupId}, and the file says ${group}.`);
  }
  if (identity.partitions !== partitions) {
    errors.push(
      `${server}: the database stores the partitions ${identity.partitions}, and the file says ${partitions}.`,
    );
  }
  return errors;
}

/**
 * Returns why a server cannot be copied or compared, each reason in a sentence.
 *
 * @param state what its database says, or a sentence why it does not answer
 * @param advice what to do where it is not complete, as a sentence
 */
export function unfitReasons(server: Server, state: DatabaseState | string, advice: string): string[] {
  if (!isKnown(state)) return [state];
  const { name } = server;
  const { identity, missing, unknown } = state;
  const reasons = ownerErrors(ownerOf(server), identity);
  if (missing > 0) reasons.push(`${name} lacks ${missing} migrations of this version: start its writers.`);
  else if (!identity) reasons.push(`${name} is empty: no writer has stored anything.`);
  if (unknown.length > 0) reasons.push(`${name} has migrations of a newer version: use the command of that version.`);
  if (identity && identity.state !== 'complete') {
    reasons.push(`${name} is ${identity.state}: ${advice} ${identity.detail}`.trim());
  }
  return reasons;
}

/** Returns a sentence where two servers do not store the same partitions. */
export function differentRanges(one: Server, other: Server): string[] {
  const [mine, theirs] = [ownerOf(one).partitions, ownerOf(other).partitions];
  if (mine === theirs) return [];
  return [`${one.name} has the partitions ${mine}, and ${other.name} ${theirs}: they must be the same.`];
}

/** Two addresses that lead to one database would each get a half of the messages, or all of them twice. */
export function sharedDatabases(servers: readonly KnownServer[]): string[] {
  const known = servers.flatMap(({ name, state }) => (state.identity ? [{ name, id: state.identity.id }] : []));
  return [...Map.groupBy(known, ({ id }) => id).values()]
    .filter((same) => same.length > 1)
    .map((same) => `${same.map(({ name }) => name).join(' and ')} are one database: check the addresses.`);
}

/**
 * Returns what is wrong with the databases of servers of which those with the same range are replicas: these are one database, and those of
 * several ranges are apart.
 */
export function replicaProblems(servers: readonly (KnownServer & { readonly server: Ranged })[]): string[] {
  const apart = [...Map.groupBy(servers, ({ server }) => describeRange(server.partitions)).values()].flatMap((same) => {
    const known = same.filter(({ state }) => state.identity !== undefined);
    if (new Set(known.map(({ state }) => state.identity?.id)).size <= 1) return [];
    return [`${known.map(({ name }) => name).join(' and ')} are no replicas of each other: check the macro shard.`];
  });
  const known = servers.map(({ server, ...one }) => ({ ...one, partitions: server.partitions }));
  const ofRanges = [...Map.groupBy(known, ({ state }) => state.identity?.id).values()].flatMap(distinctRanges);
  return [...sharedDatabases(ofRanges), ...apart];
}

/** Returns a sentence for each setting that is not the same on all servers. */
export function differentSettings(servers: readonly KnownServer[]): string[] {
  return [
    ...differences(
      servers,
      ({ topicPartitions }) => topicPartitions,
      () => undefined,
    ).map(({ key, values }) => `The number of partitions of ${key} differs: ${values}.`),
    ...differences(
      servers,
      ({ retention }) => retention,
      (key) => (key === '' ? 'for ever' : 'none of its own'),
    ).map(({ key, values }) => {
      const workspace = key === '' ? 'of all other workspaces' : `of ${key}`;
      return `The days for which events ${workspace} are kept differ: ${values}. Set them again: npm run retention.`;
    }),
  ];
}

/** @param none returns what a server has that says nothing; undefined: it does not count */
function differences(
  servers: readonly KnownServer[],
  settingsOf: (state: DatabaseState) => ReadonlyMap<string, number>,
  none: (key: string) => string | undefined,
): { readonly key: string; readonly values: string }[] {
  const known = servers.filter(({ state }) => state.identity !== undefined);
  const keys = new Set(known.flatMap(({ state }) => [...settingsOf(state).keys()]));
  return [...keys].sort().flatMap((key) => {
    const values = known.flatMap(({ name, state }) => {
      const value = settingsOf(state).get(key)?.toString() ?? none(key);
      return value === undefined ? [] : [{ name, value }];
    });
    if (new Set(values.map(({ value }) => value)).size <= 1) return [];
    return [{ key, values: values.map(({ name, value }) => `${name} ${value}`).join(', ') }];
  });
}
