import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { parseJson } from '../text/json.ts';

/** An event of a stream, as a client of the standard sees it. */
export interface StreamedEvent {
  readonly id: string;
  readonly record: Readonly<Record<string, unknown>>;
}

export interface StreamMove {
  readonly from: string;
  readonly to: string;
  readonly since: string;
}

export interface StreamOptions {
  readonly key: string;
  readonly lastEventId?: string | undefined;
}

/** A client of `GET /events/stream`. It follows the standard's rules for lines, ids and comments. */
export class EventStream {
  readonly events: StreamedEvent[] = [];
  readonly comments: string[] = [];
  /** From which servers to which others it went on, and since when events may come again. */
  readonly moves: StreamMove[] = [];
  /** How many events it had got before each of them. */
  readonly movedAt: number[] = [];
  /** Why the service ended the stream, if it said so. */
  readonly problems: unknown[] = [];
  /** The id of the last event or heartbeat: what a client sends when it connects again. */
  lastEventId: string | undefined;
  readonly response: IncomingMessage;
  /** Resolves when the response has ended or was cut off. */
  readonly ended: Promise<void>;
  readonly #request: ClientRequest;
  #line = '';
  #id = '';
  #data: string[] = [];
  #type = '';

  private constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request;
    this.response = response;
    this.ended = new Promise((resolve) => response.once('close', resolve));
    response.on('error', () => undefined);
  }

  /** Connects and reads. @throws when the connection is refused; `response` has the status */
  static async open(url: string, options: StreamOptions): Promise<EventStream> {
    const stream = await EventStream.openPaused(url, options);
    stream.read();
    return stream;
  }

  /** Connects, and reads nothing until {@link read} is called. */
  static async openPaused(url: string, { key, lastEventId }: StreamOptions): Promise<EventStream> {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    };
    return await new Promise((resolve, reject) => {
      const request = get(url, { agent: false, headers });
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
        const data = parseJson(this.#data.join('\n'));
        if (this.#type === 'problem') this.problems.push(data);
        else if (this.#type === 'moved') {
          this.moves.push(data as StreamMove);
          this.movedAt.push(this.events.length);
        } else this.events.push({ id: this.#id, record: data as StreamedEvent['record'] });
      }
      this.#data = [];
      this.#type = '';
    } else if (line.startsWith(':')) this.comments.push(line.slice(1).trim());
    else if (line.startsWith('id: ')) this.#id = line.slice(4);
    else if (line.startsWith('event: ')) this.#type = line.slice(7);
    else if (line.startsWith('data: ')) this.#data.push(line.slice(6));
  }
}
