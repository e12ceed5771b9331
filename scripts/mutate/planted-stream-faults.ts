import type { PlantedFault } from './planted-fault.ts';

const ORDER = 'services/writer/src/stream-order.ts';

/** Faults of the order that streams of replicas follow, which `simulate --only replicated` has to find within a minute. */
export const PLANTED_STREAM_FAULTS: readonly PlantedFault[] = [
  {
    name: 'streams/told-without-its-blocks',
    file: ORDER,
    search: 'const missing = Math.min(...replica.missing.map(({ number }) => number));',
    replacement: 'const missing = Number.POSITIVE_INFINITY;',
    breaks: 'A stream at a replica goes past events that this one has not fetched yet, and leaves them out.',
  },
  {
    name: 'streams/told-without-its-records',
    file: ORDER,
    search: 'replica.newest < order.newest ? replica.newest : order.number',
    replacement: 'order.number',
    breaks: 'A stream at a replica goes past numbers of which this one does not know whose they are.',
  },
  {
    name: 'streams/late-blocks-left-out',
    file: ORDER,
    search: 'order.recorded = union(order.recorded, blocks);',
    replacement:
      'order.recorded = blocksOf(rangesOf(union(order.recorded, blocks)).map(([partition, , last]): BlockRange => [partition, 0, last]));',
    breaks: 'A block that is committed after one with a higher number never comes.',
  },
  {
    name: 'streams/one-replica-is-enough',
    file: ORDER,
    search: 'const quorum = Math.min(QUORUM, replicas.length);',
    replacement: 'const quorum = 1;',
    breaks: 'What one replica alone had is sent, lost with it, stored again, and sent again.',
  },
  {
    name: 'streams/goes-on-behind-own-records',
    file: ORDER,
    search: 'const most = replicas.reduce((one, other) => (other.newest > one.newest ? other : one));',
    replacement: 'const most = replicas[0] as KnownReplica;',
    breaks: 'A new owner does not know records that others have, and gives their blocks another number.',
  },
  {
    name: 'streams/older-owners-record',
    file: 'tests/simulation/clickhouse/block-order.ts',
    search: 'requireNewestEpoch(tables, parameters);',
    replacement: '',
    breaks: 'What a former owner has sent arrives late, and gives blocks a second number.',
  },
];
