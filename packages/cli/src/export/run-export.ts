import { backoff, sleep } from '@sluice/shared/base/retry';
import { countLineFeeds } from '@sluice/shared/text/line-feeds';
import { Agent, request } from 'undici';
import { describeFailure, describeResponse } from '../transfer/describe-response.ts';
import type { ExportArguments } from './arguments.ts';
import type { PartFile } from './part-file.ts';

const RETRY_MS_FIRST = 250;
const RETRY_MS_MAX = 5_000;

/** How an export ended. */
export type ExportEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'interrupted' }
  /** `reason` is a phrase for people. */
  | { readonly kind: 'stopped'; readonly reason: string };

export interface ExportCounts {
  /** How many events the file has; 0 for formats other than NDJSON. */
  events: number;
  /** Received by this process. */
  bytes: number;
  /** The time of the last event that was received, in milliseconds; `undefined` when it is not known. */
  lastMs: number | undefined;
}

export interface ExportOptions extends Pick<ExportArguments, 'url' | 'format' | 'parameters' | 'giveUpAfterMs'> {
  readonly key: string;
  readonly part: PartFile;
  readonly signal: AbortSignal;
  /** Called before each retry. */
  readonly onRetry: (reason: string) => void;
}

/** The service refuses the request, and would refuse it again. */
class Refused extends Error {
  override readonly name = 'Refused';
}

/** A record's last members. They are not in its properties, where quotes have a backslash or a comma does not follow. */
const LAST_TIME = /"timestamp":"([^"]{24})","receivedAt":"[^"]{24}"\}\n(?:\{.*)?$/s;

/** An export to a file. It retries until the file is complete. */
export class Export {
  readonly #options: ExportOptions;
  readonly #counts: ExportCounts = { events: 0, bytes: 0, lastMs: undefined };
  /** When something was received the last time. */
  #progressAt = performance.now();

  constructor(options: ExportOptions) {
    this.#options = options;
  }

  /** They change while the export runs. */
  get counts(): Readonly<ExportCounts> {
    return this.#counts;
  }

  async run(): Promise<ExportEnd> {
    // A filter that few events match keeps the service silent for long. The system notices when the connection is dead.
    const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
    return await untilComplete(
      this.#options,
      () => this.#receive(dispatcher),
      () => this.#progressAt,
    );
  }

  /** Receives what the file lacks. */
  async #receive(dispatcher: Agent): Promise<void> {
    const { format, part } = this.#options;
    if (format === 'ndjson') return await this.#receiveLines(dispatcher);
    await part.clear();
    await this.#request(dispatcher, undefined);
    if (format === 'csv') await this.#readTrailer(format);
  }

  /** Receives what comes after the last record of the file. */
  async #receiveLines(dispatcher: Agent): Promise<void> {
    const { part } = this.#options;
    await part.removeUnfinished();
    const last = await part.lastRecord();
    const before = await part.countLines();
    this.#counts.events = before;
    await this.#request(dispatcher, last && `${last.timestamp},${last.uuid}`);
    const sent = await this.#readTrailer('ndjson');
    this.#counts.events -= 1;
    const arrived = this.#counts.events - before;
    if (sent !== arrived) throw new Refused(`${sent} events were sent, and ${arrived} arrived`);
    // The trailer of the whole file.
    await part.removeUnfinished();
    await part.append(oneLine(`{"complete":true,"events":${this.#counts.events}}\n`));
  }

  /** Appends the response to the file. */
  async #request(dispatcher: Agent, after: string | undefined): Promise<void> {
    const { url, part } = this.#options;
    const body = await requestBody(url.origin + this.#pathOf(after), dispatcher, this.#options);
    await part.append(this.#counted(body));
  }

  #pathOf(after: string | undefined): string {
    const { url, format, parameters } = this.#options;
    const query = new URLSearchParams([...parameters, ['format', format], ...(after ? [['after', after]] : [])]);
    return `${url.pathname.replace(/\/$/, '')}/events/export?${query}`;
  }

  async *#counted(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.#progressAt = performance.now();
      this.#counts.bytes += chunk.length;
      if (this.#options.format === 'ndjson') {
        this.#counts.events += countLineFeeds(chunk);
        const time = LAST_TIME.exec(chunk.toString('latin1', Math.max(0, chunk.length - 4_096)))?.[1];
        if (time !== undefined) this.#counts.lastMs = Date.parse(time);
      }
      yield chunk;
    }
  }

  async #readTrailer(format: 'ndjson' | 'csv'): Promise<number> {
    const sent = await this.#options.part.trailer(format);
    if (sent === undefined) throw new Error('the response ended before its last line');
    return sent;
  }
}

type RetryOptions = Pick<ExportOptions, 'part' | 'giveUpAfterMs' | 'signal' | 'onRetry'>;

/**
 * Receives what the file lacks, again and again until it is complete.
 *
 * @param progressAt returns when something was received the last time, on the clock of `performance`
 */
export async function untilComplete(
  { part, giveUpAfterMs, signal, onRetry }: RetryOptions,
  receive: () => Promise<void>,
  progressAt: () => number,
): Promise<ExportEnd> {
  for (const delayMs of backoff(RETRY_MS_FIRST, RETRY_MS_MAX)) {
    try {
      await receive();
      await part.finish();
      return { kind: 'complete' };
    } catch (error) {
      if (signal.aborted) return { kind: 'interrupted' };
      const reason = reasonOf(error);
      if (error instanceof Refused) return { kind: 'stopped', reason };
      onRetry(reason);
      const leftMs = progressAt() + giveUpAfterMs - performance.now();
      if (leftMs <= 0) return { kind: 'stopped', reason };
      await sleep(Math.min(delayMs, leftMs), signal);
    }
  }
  throw new Error('unreachable: the delays have no end');
}

/** Sends a request to query-api. @throws {Refused} when it would be refused again; other errors may pass */
export async function requestBody(
  url: string,
  dispatcher: Agent,
  { key, signal }: Pick<ExportOptions, 'key' | 'signal'>,
): Promise<AsyncIterable<Buffer>> {
  const headers = { authorization: `Bearer ${key}` };
  const { statusCode, body } = await request(url, { dispatcher, signal, headers });
  if (statusCode === 200) return body;
  const reason = describeResponse(statusCode, await body.text());
  if (statusCode < 500 && statusCode !== 408 && statusCode !== 429) throw new Refused(reason);
  throw new Error(reason);
}

async function* oneLine(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

function reasonOf(error: unknown): string {
  if (error instanceof Refused) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined ? (error as Error).message : describeFailure(error);
}
