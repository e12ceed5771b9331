import type { Choice, Fault, FaultTable, OwnTrigger } from '../world/faults.ts';
import type { Request } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import { chooseWriterFaults, chooseWriterKinds, LATE, WRITER_FAULTS } from '../writer/faults.ts';
import type { World } from '../writer/world.ts';

const BALANCE = 'balance';
const STRAY = 'stray statement';

export const BALANCER_FAULTS: FaultTable<World> = {
  ...WRITER_FAULTS,
  [BALANCE]: { weight: 10, begin: balance },
  [STRAY]: { weight: 10, begin: stray },
};

/** Most can go wrong where a single statement goes elsewhere, and none of those around it. */
const OWN_TRIGGERS: Readonly<Record<string, OwnTrigger>> = {
  [STRAY]: {
    moment: 'sent',
    requests: [
      ...Array<string>(6).fill('record-epoch'),
      ...Array<string>(4).fill('end-older-statements'),
      ...Array<string>(3).fill('read-partitions'),
      ...['newest-epoch', 'read-identity', 'store-positions', 'store-dead-letters'],
      ...['end-own-statements', 'close-session', 'find-deleted-rows', 'forget-erased'],
    ],
  },
};

/** Chooses the faults of a schedule. None loses what Kafka or ClickHouse have acknowledged. */
export function chooseBalancerFaults(random: Random, count: number, untilMs: number): Fault[] {
  const own = random.pick([[BALANCE], [STRAY], [BALANCE, STRAY]]);
  const kinds = random.isTrue(0.3) ? [STRAY, LATE] : [...own, ...chooseWriterKinds(random, false)];
  return chooseWriterFaults(random, { kinds, count, untilMs }, OWN_TRIGGERS);
}

/** How likely one request goes to another server than the one before: by turns, by connections, or hardly ever. */
const TURNS = [0.5, 0.5, 0.15, 0.15, 0.03] as const;

/** A second server is behind the address, beside the first one or in its place. */
function balance({ servers }: World, { manner, target }: Choice) {
  for (const { balancer } of servers) {
    balancer?.leadTo(1);
    if (balancer && target < 0.85) balancer.turns = TURNS[Math.floor(manner * TURNS.length)] ?? 0;
  }
  const end = () => {
    for (const { balancer } of servers) balancer?.leadTo(0);
  };
  return { name: `a second server is ${target < 0.85 ? 'behind' : 'at'} the address`, end };
}

/** The statement that triggers it goes to the second server. */
function stray({ servers }: World, _choice: Choice, request?: Request) {
  for (const { balancer } of servers) if (balancer) balancer.straying = request?.what;
  return { name: `${request?.what} goes to a second server` };
}
