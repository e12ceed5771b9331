import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseJson } from '@sluice/shared/json';
import type { QueryService } from './query-service.ts';

/** An event of a stream, as a client of the standard sees it. */
export interface StreamedEvent {
  readonly id: string;
  readonly record: Readonly<Record<string, unknown>>;
}

export interface StreamOptions {
  /** Default: `a`. */
  readonly workspace?: string;
  readonly lastEventId?: string | undefined;
}

/** A client of `GET /events/stream`. It follows the standard's rules for lines, ids and comments. */
export class EventStream {
  readonly events: StreamedEvent[] = [];
  readonly comments: string[] = [];
  /** The id of the last event or heartbeat: what a client sends when it connects again. */
  lastEventId: string | undefined;
  readonly response: IncomingMessage;
  /** Resolves when the response has ended or was cut off. */
  readonly ended: Promise<void>;
  readonly #request: ClientRequest;
  #line = '';
  #id = '';
  #data: string[] = [];

  private constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request;
    this.response = response;
    this.ended = new Promise((resolve) => response.once('close', resolve));
    response.on('error', () => undefined);
  }

  /** Connects and reads. Fails when the connection is refused; `response` has the status. */
  static async open(service: QueryService, path: string, options: StreamOptions = {}): Promise<EventStream> {
    const stream = await EventStream.openPaused(service, path, options);
    stream.read();
    return stream;
  }

  /** Connects, and reads nothing until {@link read} is called. */
  static async openPaused(
    { app }: QueryService,
    path: string,
    { workspace = 'a', lastEventId }: StreamOptions = {},
  ): Promise<EventStream> {
    const { port } = app.server.address() as AddressInfo;
    const headers = {
      authorization: `Bearer ${workspace}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    };
    return await new Promise((resolve, reject) => {
      const request = get(`http://127.0.0.1:${port}${path}`, { agent: false, headers });
      request.on('error', reject);
      request.once('response', (response) => resolve(new EventStream(request, response)));
    });
  }

  read(): void {
    this.response.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#line + chunk).split('\n');
      this.#line = lines.pop() ?? '';
      for (const line of lines) this.#take(line);
    });
  }

  get uuids(): string[] {
    return this.events.map(({ record }) => record['uuid'] as string);
  }

  close(): void {
    this.#request.destroy();
  }

  #take(line: string): void {
    if (line === '') {
      this.lastEventId = this.#id;
      if (this.#data.length > 0) {
        this.events.push({ id: this.#id, record: parseJson(this.#data.join('\n')) as StreamedEvent['record'] });
      }
      this.#data = [];
    } else if (line.startsWith(':')) this.comments.push(line.slice(1).trim());
    else if (line.startsWith('id: ')) this.#id = line.slice(4);
    else if (line.startsWith('data: ')) this.#data.push(line.slice(6));
  }
}
