/** Partitions of Kafka one after the other, both ends included. The numbers are the same for both topics. */
export interface PartitionRange {
  readonly first: number;
  readonly last: number;
}

/** Reads a range such as `0-23`; `undefined` where a text is none. */
export function parseRange(text: string): PartitionRange | undefined {
  const [, first, last] = /^(\d{1,4})-(\d{1,4})$/.exec(text) ?? [];
  if (first === undefined || last === undefined || Number(first) > Number(last)) return undefined;
  return { first: Number(first), last: Number(last) };
}

/** Returns a range as text, `all` for that of all partitions. */
export function describeRange(range: PartitionRange | undefined): string {
  return range ? `${range.first}-${range.last}` : 'all';
}

/** Whether a partition belongs to a range. */
export function isInRange(range: PartitionRange | undefined, partition: number): boolean {
  return range === undefined || (partition >= range.first && partition <= range.last);
}

/** Whether all partitions of a range belong to another one. */
export function isWithin(range: PartitionRange | undefined, other: PartitionRange | undefined): boolean {
  if (range === undefined || other === undefined) return other === undefined;
  return isInRange(other, range.first) && isInRange(other, range.last);
}

/** A server, with the partitions that it has; undefined: all. */
export interface Ranged {
  readonly name: string;
  readonly partitions: PartitionRange | undefined;
}

/** Returns what is wrong with the ranges of the servers that are read: they are equal or apart, and leave nothing out. */
export function rangeErrors(servers: readonly Ranged[]): string[] {
  if (servers.length === 0) return ['servers: at least one must be read, which is the default of serves'];
  const errors: string[] = [];
  let before: Ranged | undefined;
  for (const server of distinctRanges(servers)) {
    const start = before === undefined ? 0 : (before.partitions?.last ?? Number.POSITIVE_INFINITY) + 1;
    const { first = 0 } = server.partitions ?? {};
    if (first > start) errors.push(`servers: no server that is read has the partitions ${start}-${first - 1}`);
    if (before && first < start) {
      errors.push(
        `servers: ${before.name} (${describeRange(before.partitions)}) and ${server.name} (${describeRange(server.partitions)}) ` +
          'share partitions; ranges must be equal, or have none in common',
      );
    }
    if (!before || lastOf(server) > lastOf(before)) before = server;
  }
  return errors;
}

/** Returns an error if the ranges do not end with the last partition. @param partitions how many each topic has */
export function endErrors(servers: readonly Ranged[], partitions: number): string[] {
  const last = Math.max(...servers.map(lastOf));
  if (last === Number.POSITIVE_INFINITY || last === partitions - 1) return [];
  return [`servers: the ranges end with partition ${last}, and the last of the topics is ${partitions - 1}`];
}

function lastOf({ partitions }: Ranged): number {
  return partitions?.last ?? Number.POSITIVE_INFINITY;
}

/** Whether two servers have the same range. */
export function haveSameRange(one: Pick<Ranged, 'partitions'>, other: Pick<Ranged, 'partitions'>): boolean {
  return describeRange(one.partitions) === describeRange(other.partitions);
}

/** Returns the servers that have the range of one. */
export function sameRange<Server extends Pick<Ranged, 'partitions'>>(
  servers: readonly Server[],
  one: Pick<Ranged, 'partitions'>,
): Server[] {
  return servers.filter((other) => haveSameRange(other, one));
}

/** Returns the first server of each range, in the order of their partitions. */
export function distinctRanges<Server extends Ranged>(servers: readonly Server[]): Server[] {
  const byRange = new Map<string, Server>();
  for (const server of servers) {
    const range = describeRange(server.partitions);
    if (!byRange.has(range)) byRange.set(range, server);
  }
  const start = ({ partitions }: Ranged) => partitions?.first ?? 0;
  return [...byRange.values()].sort((one, other) => start(one) - start(other));
}
