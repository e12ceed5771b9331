import {
  breakLink,
  type Choice,
  chooseFaults,
  chooseKinds,
  chosen,
  type Fault,
  type FaultTable,
  HOLDING,
  holdRequest,
  scheduleFault,
} from '../world/faults.ts';
import type { Request } from '../world/network.ts';
import { Random } from '../world/random.ts';
import type { Kind } from '../world/run-schedule.ts';
import { WORKSPACE } from './clients.ts';
import type { QueryApiPlace } from './query-api-place.ts';
import { WebhooksWorld } from './world.ts';

/** After the last fault, everything has to be delivered within this time, in milliseconds. */
const RECOVERY_MS = 120_000;

/** How often it is looked whether it is, in milliseconds. */
const LOOK_MS = 500;

/** Its leases are over when it goes on, with what it was about to do. */
const FREEZING = 'freeze for a lease';

const FAULTS: FaultTable<WebhooksWorld> = {
  'kill query-api': {
    weight: 4,
    begin(world, choice, request) {
      const place = chosenPlace(world, choice, request);
      place.kill();
      return { name: `${place.name} is killed`, end: () => place.start() };
    },
  },
  'stop query-api': {
    weight: 2,
    begin(world, choice, request) {
      const place = chosenPlace(world, choice, request);
      place.stop();
      return { name: `${place.name} is stopped`, end: () => place.start() };
    },
  },
  'freeze query-api': {
    weight: 4,
    begin(world, choice, request) {
      const place = chosenPlace(world, choice, request);
      place.freeze();
      return { name: `${place.name} is frozen`, end: () => place.thaw() };
    },
  },
  [FREEZING]: {
    weight: 3,
    begin(world, choice, request) {
      const place = chosenPlace(world, choice, request);
      place.freeze();
      world.time.after(world.leaseMs * (1 + choice.manner) + 1_000, () => place.thaw());
      return { name: `${place.name} is frozen until its leases are over` };
    },
  },
  'set clock': {
    weight: 2,
    begin(world, choice, request) {
      const place = chosenPlace(world, choice, request);
      const aheadMs = Math.floor((choice.manner - 0.5) * 120_000);
      place.setClock(aheadMs);
      return { name: `the clock of ${place.name} is ${aheadMs} ms ahead` };
    },
  },
  'break ClickHouse': {
    weight: 4,
    begin: (world, choice, request) =>
      breakLink(world.network, chosenPlace(world, choice, request).name, 'ClickHouse', choice),
  },
  'break receiver': {
    weight: 3,
    begin: (world, choice, request) =>
      breakLink(world.network, chosenPlace(world, choice, request).name, 'receiver', choice),
  },
  [HOLDING]: { weight: 5, begin: holdRequest },
  'stop ClickHouse': {
    weight: 1,
    begin({ clickhouse }) {
      clickhouse.stop();
      return { name: 'ClickHouse is stopped', end: () => clickhouse.mend() };
    },
  },
  'slow ClickHouse': {
    weight: 3,
    begin({ clickhouse }, { manner }) {
      clickhouse.slownessMs = 50 + manner ** 2 * 6_000;
      return {
        name: `ClickHouse takes up to ${Math.floor(clickhouse.slownessMs)} ms for a statement`,
        end: () => clickhouse.mend(),
      };
    },
  },
  'refuse statements': {
    weight: 2,
    begin({ clickhouse }, { manner }) {
      clickhouse.refusals = 0.1 + manner / 2;
      return { name: 'ClickHouse refuses statements', end: () => clickhouse.mend() };
    },
  },
  'failing receivers': {
    weight: 3,
    begin({ receivers }, { manner }) {
      receivers.failures = manner;
      receivers.slownessMs = 20 + manner * 2_000;
      const end = () => {
        receivers.failures = 0;
        receivers.slownessMs = 20;
      };
      return { name: `receivers fail ${Math.floor(manner * 100)} % of attempts`, end };
    },
  },
  'failing streams': {
    weight: 2,
    begin({ stored, numbers }, { manner }) {
      stored.failures = manner / 3;
      numbers.failures = manner / 3;
      const end = () => {
        stored.failures = 0;
        numbers.failures = 0;
      };
      return { name: 'streams and numbers fail', end };
    },
  },
};

/** That of the request which triggers the fault, otherwise any. */
function chosenPlace({ places }: WebhooksWorld, choice: Choice, request?: Request): QueryApiPlace {
  return places.find(({ name }) => name === request?.process?.name) ?? chosen(places, choice);
}

/** What processes ask for, each with how often faults wait for it, compared with others. */
const REQUESTS = {
  read: 4,
  'insert webhooks': 3,
  'insert webhook_states': 3,
  'insert webhook_leases': 5,
  'insert webhook_positions': 4,
  'insert console_documents': 2,
  remove: 1,
  'look up': 4,
  deliver: 4,
  http: 2,
};

const OWN_TRIGGERS = {
  [FREEZING]: { moment: 'arrived', requests: ['look up', 'look up', 'deliver', 'insert webhook_leases', 'read'] },
} as const;

interface Plan {
  readonly seed: number;
  readonly instances: number;
  readonly leaseMs: number;
  readonly perWorkspace: number;
  readonly durationMs: number;
  /** How often clients do something, in milliseconds. 0: never. */
  readonly everyMs: number;
  readonly faults: readonly Fault[];
}

/** Webhooks, alerts and views under faults: changes at once undo nothing, and each event or change is delivered, in order. */
export const WEBHOOKS: Kind = {
  name: 'webhooks',
  create(seed, note) {
    const plan = planOf(seed);
    const world = new WebhooksWorld({ ...plan, onNote: note });
    return {
      world,
      faults: plan.faults,
      run: (faults) => run(world, { ...plan, faults }),
      end() {
        for (const place of world.places) place.kill();
      },
    };
  },
};

function planOf(seed: number): Plan {
  const random = new Random(seed, 'plan');
  const durationMs = random.isTrue(0.8) ? 10_000 + random.below(20_000) : 30_000 + random.below(60_000);
  const count = random.isTrue(0.1) ? 0 : 3 + random.below(25);
  const kinds = chooseKinds(random, FAULTS, 4);
  return {
    ...{ seed, instances: 1 + random.below(3), leaseMs: random.pick([2_000, 3_000, 10_000]) },
    perWorkspace: random.pick([1, 4]),
    ...{ durationMs, everyMs: random.isTrue(0.2) ? 0 : 200 + random.below(2_000) },
    faults: chooseFaults(random, { kinds, requests: REQUESTS, own: OWN_TRIGGERS, count, untilMs: durationMs }),
  };
}

async function run(world: WebhooksWorld, { durationMs, everyMs, faults }: Plan): Promise<void> {
  const { time, clients, places, random } = world;
  const isWrong = () => world.violation !== undefined;
  for (const place of places) time.after(random.between(0, 500), () => place.start());
  for (let count = 0; count < 1 + random.below(2); count += 1) time.after(1_000, () => clients.create());
  for (let atMs = 2_000; atMs < durationMs; atMs += random.between(20, 600)) time.after(atMs, () => storeEvents(world));
  clients.resumesFailing = everyMs > 0;
  if (everyMs > 0) {
    for (let atMs = 2_000; atMs < durationMs; atMs += everyMs) {
      // Several at once.
      for (let count = 1 + random.below(3); count > 0; count -= 1)
        time.after(atMs + random.below(20), () => clients.act());
    }
  }
  for (const fault of faults) scheduleFault(world, FAULTS, fault);
  await time.runUntil(durationMs, isWrong);
  if (!isWrong()) await settle(world);
  if (isWrong()) return;
  clients.checkEnd();
  const isQuiet = faults.length === 0 && everyMs === 0;
  for (const name of isQuiet ? clients.standing : []) {
    const [repeated] = world.receivers.repeated(name);
    if (repeated) world.report(`${name} got ${repeated} twice, and nothing was wrong`);
  }
}

function storeEvents({ stored, random }: WebhooksWorld): void {
  const events = Array.from({ length: 1 + random.below(4) }, () => {
    return { workspace: WORKSPACE, event: `e${random.below(2)}`, user: `u${random.below(4)}` };
  });
  stored.store(events);
  if (random.isTrue(0.03)) stored.deleteUser(`u${random.below(4)}`);
}

/** Ends all faults, resumes what is paused, and lets time pass until everything is delivered. */
async function settle(world: WebhooksWorld): Promise<void> {
  const { time, network, clients, places, clickhouse, receivers, stored, numbers } = world;
  const isWrong = () => world.violation !== undefined;
  world.note('there are no more faults from here on');
  clients.resumesFailing = false;
  network.mendAll();
  clickhouse.mend();
  receivers.failures = 0;
  receivers.slownessMs = 20;
  stored.failures = 0;
  numbers.failures = 0;
  numbers.isHigh = true;
  for (const place of places) {
    place.thaw();
    place.start();
    place.setClock(0);
  }
  // What was under way has arrived by then.
  await time.runUntil(time.nowMs + world.graceMs, isWrong);
  if (!isWrong()) clients.checkStates();
  stored.store([{ workspace: WORKSPACE, event: 'e0', user: 'last' }]);
  const untilMs = time.nowMs + RECOVERY_MS;
  for (;;) {
    if (isWrong()) return;
    for (const name of clients.standing) if (clients.isPaused(name)) void clients.resume(name);
    await time.runUntil(time.nowMs + LOOK_MS, isWrong);
    const missing = clients.standing.map((name) => receivers.missing(name)).find((one) => one !== undefined);
    if (missing === undefined && clients.isIdle) return;
    if (time.nowMs >= untilMs) return world.report(`${missing} ${RECOVERY_MS / 1_000} s after the last fault`);
  }
}
