import { countLineFeeds } from '@sluice/shared/line-feeds';
import { backoff, sleep } from '@sluice/shared/retry';
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
  /** Of NDJSON, in the file; of other formats 0. */
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

/** `counts` changes while the export runs. */
export interface Export {
  readonly counts: Readonly<ExportCounts>;
  run(): Promise<ExportEnd>;
}

/** The service refuses the request, and would refuse it again. */
class Refused extends Error {
  override readonly name = 'Refused';
}

/** A record's last members. They are not in its properties, where quotes have a backslash or a comma does not follow. */
const LAST_TIME = /"timestamp":"([^"]{24})","receivedAt":"[^"]{24}"\}\n(?:\{.*)?$/s;

/** Creates an export to a file. It retries until the file is complete. */
export function createExport(options: ExportOptions): Export {
  const { url, key, format, parameters, part, giveUpAfterMs, signal, onRetry } = options;
  const counts: ExportCounts = { events: 0, bytes: 0, lastMs: undefined };
  let progressAt = performance.now();

  function pathOf(after: string | undefined): string {
    const query = new URLSearchParams([...parameters, ['format', format], ...(after ? [['after', after]] : [])]);
    return `${url.pathname.replace(/\/$/, '')}/events/export?${query}`;
  }

  async function* counted(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      progressAt = performance.now();
      counts.bytes += chunk.length;
      if (format === 'ndjson') {
        counts.events += countLineFeeds(chunk);
        const time = LAST_TIME.exec(chunk.toString('latin1', Math.max(0, chunk.length - 4_096)))?.[1];
        if (time !== undefined) counts.lastMs = Date.parse(time);
      }
      yield chunk;
    }
  }

  /** Receives what is missing. Returns whether the file is complete. */
  async function receive(dispatcher: Agent): Promise<boolean> {
    const isLines = format === 'ndjson';
    if (isLines) await part.removeUnfinished();
    else await part.clear();
    const last = isLines ? await part.lastRecord() : undefined;
    const before = isLines ? await part.countLines() : 0;
    counts.events = before;
    const { statusCode, body } = await request(url.origin + pathOf(last && `${last.timestamp},${last.uuid}`), {
      ...{ dispatcher, signal, headers: { authorization: `Bearer ${key}` } },
    });
    if (statusCode !== 200) {
      const reason = describeResponse(statusCode, await body.text());
      if (statusCode < 500 && statusCode !== 408 && statusCode !== 429) throw new Refused(reason);
      throw new Error(reason);
    }
    await part.append(counted(body));
    if (format === 'parquet') return true;
    const sent = await part.trailer(format);
    if (sent === undefined) throw new Error('the response ended before its last line');
    if (format === 'csv') return true;
    counts.events -= 1;
    if (sent !== counts.events - before)
      throw new Refused(`${sent} events were sent, and ${counts.events - before} arrived`);
    // The trailer of the whole file.
    await part.removeUnfinished();
    await part.append(oneLine(`{"complete":true,"events":${counts.events}}\n`));
    return true;
  }

  return {
    counts,
    async run() {
      // A filter that few events pass keeps the service silent for long. The system notices when the connection is dead.
      const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
      for (const delayMs of backoff(RETRY_MS_FIRST, RETRY_MS_MAX)) {
        try {
          await receive(dispatcher);
          await part.finish();
          return { kind: 'complete' };
        } catch (error) {
          if (signal.aborted) return { kind: 'interrupted' };
          const reason = reasonOf(error);
          if (error instanceof Refused) return { kind: 'stopped', reason };
          onRetry(reason);
          const leftMs = progressAt + giveUpAfterMs - performance.now();
          if (leftMs <= 0) return { kind: 'stopped', reason };
          await sleep(Math.min(delayMs, leftMs), signal);
        }
      }
      throw new Error('unreachable: the delays have no end');
    },
  };
}

async function* oneLine(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

function reasonOf(error: unknown): string {
  if (error instanceof Refused) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined ? (error as Error).message : describeFailure(error);
}
