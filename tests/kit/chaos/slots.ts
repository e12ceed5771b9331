import type { Pipeline } from '../pipeline.ts';
import type { Service, ServiceName } from '../service.ts';
import { isOneServer, serverNames, type Target, type Topology, writersOf } from './schedule.ts';

/** A place for a service, where one is started again whenever it ends, as a supervisor does. */
export interface Slot {
  service: Service;
  /** What has been logged by services that ended. */
  log: string;
  /** Not started again before this is over. */
  down: Promise<void>;
}

export type Slots = ReadonlyMap<Target, Slot>;

/** Starts the services that a pipeline lacks: there are two of each API, and several writers. */
export async function openSlots(pipeline: Pipeline, topology: Topology): Promise<Slots> {
  const { services } = pipeline;
  const opened = new Map<Target, Service>();
  for (const name of ['ingest-api', 'query-api'] as const) {
    opened.set(`${name} 1`, services[name]).set(`${name} 2`, await pipeline.startAnother(name));
  }
  if (isOneServer(topology)) {
    opened.set('writer 1', services.writer);
    for (const number of [2, 3]) opened.set(`writer ${number}`, await pipeline.startAnother('writer'));
  } else {
    for (const server of serverNames(topology).flat()) {
      const [first, ...others] = writersOf(server);
      opened.set(first as Target, pipeline.writers[server] as Service);
      for (const other of others) opened.set(other, await pipeline.startWriter(server));
    }
  }
  const slots = new Map<Target, Slot>();
  for (const [name, service] of opened) {
    const slot: Slot = { service, log: '', down: Promise.resolve() };
    slots.set(name, slot);
    void supervise(slot);
  }
  return slots;
}

/** Returns the addresses of all instances of a service. */
export function urlsOf(slots: Slots, name: ServiceName): string[] {
  return [...slots].filter(([slot]) => slot.startsWith(name)).map(([, { service }]) => service.url);
}

/** Slots that are closed have no service any more. */
const closed = new WeakSet<Slot>();

async function supervise(slot: Slot): Promise<void> {
  for (;;) {
    await slot.service.exited();
    await slot.down.catch(() => undefined);
    if (closed.has(slot)) return;
    slot.log += slot.service.log();
    slot.service = slot.service.again();
  }
}

export async function closeSlots(slots: Slots): Promise<void> {
  for (const slot of slots.values()) closed.add(slot);
  await Promise.all([...slots.values()].map(({ service }) => service.kill9()));
}
