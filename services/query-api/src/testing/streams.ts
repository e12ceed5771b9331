import type { AddressInfo } from 'node:net';
import { EventStream } from '@sluice/shared/testing/event-stream';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect } from 'vitest';
import { metric } from './load.ts';
import { anEvent, type QueryService, type TestEvent } from './query-service.ts';

export const PATIENCE = { interval: 10 } as const;

export interface TestStreamOptions {
  /** Default: `a`. */
  readonly workspace?: string;
  readonly lastEventId?: string | undefined;
}

/** Clients of a service's stream. */
export interface TestStreams {
  /** Connects a client; resolves once it has a position. The parameters begin with `?`. */
  open(parameters?: string, options?: TestStreamOptions): Promise<EventStream>;
  /** Connects a client, whatever the response is. It reads nothing yet. */
  openPaused(parameters?: string, options?: TestStreamOptions): Promise<EventStream>;
  /** Disconnects all clients, and waits until the service has noticed. */
  closeAll(): Promise<void>;
}

/** Lets the service listen on a port of this machine. */
export async function listenTo(service: Pick<QueryService, 'app'>): Promise<TestStreams> {
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = service.app.server.address() as AddressInfo;
  const streams = new Set<EventStream>();

  async function openPaused(parameters = '', options: TestStreamOptions = {}): Promise<EventStream> {
    const { workspace: key = 'a', lastEventId } = options;
    const url = `http://127.0.0.1:${port}/events/stream${parameters}`;
    const stream = await EventStream.openPaused(url, { key, lastEventId });
    streams.add(stream);
    return stream;
  }

  return {
    openPaused,
    async open(parameters, options) {
      const stream = await openPaused(parameters, options);
      stream.read();
      expect(stream.response.statusCode).toBe(200);
      await eventually(() => stream.lastEventId, PATIENCE).toBeDefined();
      return stream;
    },
    async closeAll() {
      for (const stream of streams) stream.close();
      streams.clear();
      await eventually(() => metric(service, 'sluice_stream_listeners'), PATIENCE).toBe(0);
    },
  };
}

export function someEvents(count: number, given: Partial<TestEvent> = {}): TestEvent[] {
  return Array.from({ length: count }, () => anEvent(given));
}

/** Waits until a client has got these events, and no others. */
export async function expectEvents(stream: EventStream, events: readonly TestEvent[]): Promise<void> {
  await eventually(() => stream.events.length, PATIENCE).toBeGreaterThanOrEqual(events.length);
  expect([...stream.uuids].sort()).toEqual(events.map(({ uuid }) => uuid).sort());
}
