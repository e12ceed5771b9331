import { type Check, type Finding, note, ok, wrong } from './check.ts';

/** A replica, by its name in the file of servers, with what its ClickHouse says of itself. */
export interface PlacedReplica {
  readonly server: string;
  /** The partitions that it stores: `all`, or a range such as `0-23`. */
  readonly partitions: string;
  /** Its macro `shard`. */
  readonly shard: string;
  /** Its macro `replica`. */
  readonly replica: string;
}

/** Compares the shards of all replicas: ClickHouse copies rows between those of one shard, whatever the file of servers says. */
export class Shards {
  readonly #replicas: PlacedReplica[] = [];

  add(replica: PlacedReplica): void {
    this.#replicas.push(replica);
  }

  get check(): Check {
    return {
      name: 'clickhouse.shards',
      why: 'ClickHouse copies rows between the replicas of one shard, whatever partitions they store.',
      run: async () => shardsFinding(this.#replicas),
    };
  }
}

/** Returns what the shards of replicas mean for Sluice. */
export function shardsFinding(replicas: readonly PlacedReplica[]): Finding {
  if (replicas.length === 0) return note('no replica has said its shard', 'See the lines above.');
  const problems = [
    ...differing(replicas, 'partitions', 'shard', (range) => `the servers of the partitions ${range}`),
    ...differing(replicas, 'shard', 'partitions', (shard) => `the servers of the shard ${shard}`),
    ...[...Map.groupBy(replicas, ({ shard, replica }) => JSON.stringify([shard, replica])).values()]
      .filter((same) => same.length > 1)
      .map((same) => `${same.map(({ server }) => server).join(' and ')} are both ${nameOf(same)}`),
  ];
  if (problems.length > 0)
    return wrong(
      problems.join('; '),
      'Give all servers of one range, and of no other one, the same macro shard, and each a macro replica of its own: ' +
        'docs/operate/existing-cluster.md#several-shards.',
    );
  const ranges = [...Map.groupBy(replicas, ({ partitions }) => partitions)];
  const described = ranges.map(([range, [first]]) => `shard ${first?.shard} has the partitions ${range}`);
  return ok(described.join(', '));
}

function nameOf([first]: readonly PlacedReplica[]): string {
  return `the replica ${first?.replica} of the shard ${first?.shard}`;
}

/** Returns a sentence for each value of one member whose replicas have several values of another one. */
function differing(
  replicas: readonly PlacedReplica[],
  one: 'partitions' | 'shard',
  other: 'partitions' | 'shard',
  describe: (value: string) => string,
): string[] {
  return [...Map.groupBy(replicas, (replica) => replica[one])].flatMap(([value, same]) => {
    if (new Set(same.map((replica) => replica[other])).size === 1) return [];
    const each = same.map((replica) => `${replica.server} ${replica[other]}`).join(', ');
    return [`${describe(value)} have several ${other === 'shard' ? 'shards' : 'ranges'} (${each})`];
  });
}
