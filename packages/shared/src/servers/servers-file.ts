import { z } from 'zod';
import { clickHouseAddress, clickHouseDatabase } from '../config/config.ts';
import {
  describeRange,
  distinctRanges,
  type PartitionRange,
  parseRange,
  type Ranged,
  rangeErrors,
} from './partition-range.ts';

/** The usual ports of ClickHouse's native protocol. */
const NATIVE_PORT = 9_000;
const NATIVE_TLS_PORT = 9_440;

/** A name is part of metrics, stream positions and names of consumer groups. */
export const serverName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/, 'must be 1 to 32 small letters, digits and hyphens');

/** What the address of a native protocol must be. */
export const NATIVE_ADDRESS = 'must be a host and a port, such as ch-a1:9000';

/** Whether a text is a host and a port. ClickHouse would read commas, braces and bars as several addresses. */
export function isNativeAddress(text: string): boolean {
  return /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}$/.test(text);
}

const serverEntry = z.strictObject({
  name: serverName,
  url: clickHouseAddress,
  native: z.string().refine(isNativeAddress, NATIVE_ADDRESS).optional(),
  nativeTls: z.boolean().optional(),
  database: clickHouseDatabase.optional(),
  group: z.string().min(1, 'must not be empty').max(200, 'must be at most 200 characters').optional(),
  partitions: z
    .string()
    .refine((text) => parseRange(text) !== undefined, 'must be a range such as 0-23')
    .transform(parseRange)
    .optional(),
  serves: z.boolean().default(true),
});

const serversFile = z.strictObject({ servers: z.array(serverEntry).min(1, 'must name a server') });

/** The same, whatever the entries have. */
const looseFile = z.looseObject({ servers: z.array(z.record(z.string(), z.unknown())) });

/** A ClickHouse server that is fed by a consumer group of its own, or one of several replicas that a group feeds together. */
export interface Server {
  readonly name: string;
  /** The address of its HTTP interface. */
  readonly url: string;
  /** Host and port of its native protocol, by which other ClickHouse servers read it. */
  readonly native: string;
  /** Whether the native protocol is spoken over TLS. */
  readonly nativeTls: boolean;
  readonly database: string;
  /** The consumer group of its writers. */
  readonly group: string;
  /** The partitions of each topic that it stores; `undefined`: all. Servers with equal ranges are mirrors, or replicas of each other. */
  readonly partitions: PartitionRange | undefined;
  /** Whether queries may read it. One that is being filled is fed, and not read. */
  readonly serves: boolean;
}

/** What an entry of the file need not say. */
export interface ServerDefaults {
  readonly database: string;
  /** The group of a server is this, a dot and its name; that of replicas is this, with a dot and their range if they have one. */
  readonly group: string;
  /** Whether servers with equal ranges are replicas: one group feeds them. Default false. */
  readonly areReplicas?: boolean;
}

/** A file of servers is not valid. */
export class ServersFileError extends Error {
  override readonly name = 'ServersFileError';
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(errors.join('; '));
    this.errors = errors;
  }
}

/** Returns the servers of a file, in its order. @throws {ServersFileError} naming every error */
export function parseServersFile(text: string, defaults: ServerDefaults): readonly Server[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new ServersFileError(['the file is not JSON']);
  }
  const result = serversFile.safeParse(content);
  const errors = [
    ...(result.error?.issues ?? []).map(({ path, message }) => `${path.join('.') || 'the file'}: ${message}`),
    ...errorsBetween(content, defaults),
    ...(defaults.areReplicas ? replicaErrors(content) : []),
  ];
  if (!result.success || errors.length > 0) throw new ServersFileError(errors);
  return result.data.servers.map((entry) => serverOf(entry, defaults));
}

/**
 * Returns what is wrong between the entries of a file: as much of it as the valid members say, so that a mistake in one of them
 * hides no other one.
 */
function errorsBetween(content: unknown, defaults: ServerDefaults): string[] {
  const entries = looseFile.safeParse(content).data?.servers ?? [];
  if (entries.length === 0) return [];
  const valid = entries.map((entry) => validMembers(entry, defaults));
  const all = valid.map(({ name, partitions }, index) => ({ name: name ?? `servers.${index}`, partitions }));
  const serving = all.filter((_, index) => valid[index]?.serves === true);
  const areKnown = valid.every(({ serves, partitions }) => serves !== undefined && partitions !== 'wrong');
  // Of replicas, those that are not read are looked at as well: nobody fills one of another range by hand.
  const looked = areKnown ? [serving, ...(defaults.areReplicas ? [all] : [])] : [];
  return [...repetitions(valid, defaults), ...new Set(looked.flatMap((some) => rangeErrors(some as Ranged[])))];
}

/** The members of an entry that are valid, or have a default. */
type ValidMembers = {
  readonly [Member in 'name' | 'url' | 'database' | 'group' | 'serves']: Server[Member] | undefined;
} & { readonly partitions: PartitionRange | undefined | 'wrong' };

function validMembers(entry: Readonly<Record<string, unknown>>, defaults: ServerDefaults): ValidMembers {
  const { name, url, database, group, partitions, serves } = serverEntry.shape;
  const range = partitions.safeParse(entry['partitions']);
  const ownName = name.safeParse(entry['name']).data;
  const ownGroup = group.safeParse(entry['group']);
  const ownDatabase = database.safeParse(entry['database']);
  return {
    name: ownName,
    url: url.safeParse(entry['url']).data,
    database: ownDatabase.success ? (ownDatabase.data ?? defaults.database) : undefined,
    group: ownGroup.success
      ? (ownGroup.data ?? (ownName && groupOf({ name: ownName, partitions: range.data }, defaults)))
      : undefined,
    serves: serves.safeParse(entry['serves']).data,
    partitions: range.success ? range.data : 'wrong',
  };
}

function groupOf({ name, partitions }: Ranged, { group, areReplicas = false }: ServerDefaults): string {
  if (!areReplicas) return `${group}.${name}`;
  return partitions ? `${group}.${describeRange(partitions)}` : group;
}

function serverOf(entry: z.output<typeof serverEntry>, defaults: ServerDefaults): Server {
  const { name, url, database = defaults.database, partitions, serves } = entry;
  const { group = groupOf({ name, partitions }, defaults) } = entry;
  const { protocol, hostname } = new URL(url);
  const { nativeTls = protocol === 'https:' } = entry;
  const { native = `${hostname}:${nativeTls ? NATIVE_TLS_PORT : NATIVE_PORT}` } = entry;
  return { name, url, native, nativeTls, database, group, partitions, serves };
}

/** Returns why one statement cannot read servers of several ranges: what must be equal, and is not. */
export function readingErrors(servers: readonly Server[]): string[] {
  const serving = servers.filter(({ serves }) => serves);
  if (distinctRanges(serving).length === 1) return [];
  const differing = (['database', 'nativeTls'] as const).filter(
    (property) => new Set(serving.map((server) => server[property])).size > 1,
  );
  const isLogin = serving.some(({ url }) => new URL(url).username !== '');
  return [
    ...differing.map((property) => `servers: all that are read need the same ${property} where they have ranges`),
    ...(isLogin ? ['servers: where they have ranges, the login is that of the environment, and in no url'] : []),
  ];
}

/** Replicas are copies of one another: what would make them differ is refused. */
function replicaErrors(content: unknown): string[] {
  const entries = looseFile.safeParse(content).data?.servers ?? [];
  const own = ['group', 'database'] as const;
  return entries.flatMap((entry, index) =>
    own
      .filter((member) => entry[member] !== undefined)
      .map((member) => `servers.${index}.${member}: replicas have no ${member} of their own (CLICKHOUSE_REPLICATION)`),
  );
}

/** Returns an error for each name, group and database that two servers have. */
function repetitions(servers: readonly ValidMembers[], { areReplicas = false }: ServerDefaults): string[] {
  return [
    ...repeated(servers, 'name', ({ name }) => name),
    ...(areReplicas ? [] : repeated(servers, 'group', ({ group }) => group)),
    ...repeated(
      servers,
      'url',
      ({ url, database }) => url && database && `${new URL(url).host} (database ${database})`,
    ),
  ];
}

/** @param keyOf returns what must differ; undefined where it is not known */
function repeated(
  servers: readonly ValidMembers[],
  name: string,
  keyOf: (server: ValidMembers) => string | undefined,
): string[] {
  const first = new Map<string, number>();
  return servers.flatMap((server, index) => {
    const key = keyOf(server);
    if (key === undefined) return [];
    const other = first.get(key);
    if (other === undefined) first.set(key, index);
    return other === undefined ? [] : [`servers.${index}.${name}: ${key} is that of servers.${other} as well`];
  });
}
