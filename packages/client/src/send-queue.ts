import type { CallStore, ClientErrorCode, FlushOptions, QueuedCall } from './calls.ts';

/** What the queue uses of a browser. */
interface Browser {
  readonly document?: {
    readonly visibilityState: string;
    addEventListener(type: 'visibilitychange', listener: () => void): void;
    removeEventListener(type: 'visibilitychange', listener: () => void): void;
  };
  readonly navigator: { sendBeacon(url: string, text: string): boolean };
}

const { document, navigator } = globalThis as unknown as Browser;

/** Whether a request can outlive a page. Firefox knows `keepalive` since version 133. */
const canKeepAlive = !!document && 'keepalive' in Request.prototype;

/** Browsers allow requests that outlive a page 64 KiB, for everything on the page together. Some is left to others. */
const KEEPALIVE_BYTES_MAX = 60_000;

/** The largest batch, in bytes of JSON: well below the service's default for a body. In a browser it can outlive a page. */
const BATCH_BYTES_MAX = canKeepAlive ? KEEPALIVE_BYTES_MAX : 1_048_576;

/** The memory that calls may take, in bytes of JSON. */
const QUEUE_BYTES_MAX = 16_777_216;

/** Longer than the service holds a request while Kafka does not respond, which is 8 seconds. */
const REQUEST_TIMEOUT_MS = 20_000;

const FLUSH_TIMEOUT_MS = 30_000;

/** The delay of a timer is a 32-bit integer. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** Smaller bodies gain nothing by compression. */
const GZIP_CHARACTERS_MIN = 1_024;

/** Reports an error to `onError`. */
export type Report = (
  code: ClientErrorCode,
  message: unknown,
  dropped: number,
  call?: Pick<QueuedCall, 'text'>,
  status?: number,
) => void;

export interface SendQueueOptions {
  /** The address of `POST /v1/batch`. */
  readonly url: string;
  readonly key: string;
  readonly batchCallsMax: number;
  readonly batchAgeMsMax: number;
  readonly queueCallsMax: number;
  readonly store?: CallStore | undefined;
}

/**
 * Sends calls in order, a batch at a time, until the service has them.
 *
 * - One request is in flight, so that the service sees the calls of a user in their order.
 * - A batch is sent when it is full or old, or when {@link SendQueue.flush} was called.
 * - When a page is hidden, the browser gets what waits, and sends it even if the page is closed. The calls leave the queue
 *   with the response. A page that lives on may send some of them again; they are stored once.
 */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #report: Report;
  /** In order, also those in flight. */
  #queue: Entry[] = [];
  #bytes = 0;
  #batchCallsMax: number;
  #failures = 0;
  /** Calls that were dropped because the queue was full, and are not reported yet. */
  #overflow = 0;
  #isRunning = false;
  #isClosed = false;
  #ageTimer: Timer | undefined;
  #request: AbortController | undefined;
  /** The loop waits for it: for the calls of earlier pages, and for what was handed to the browser. */
  #before: Promise<unknown>;
  /** The request in flight, and the wait after it. */
  #step: Promise<void> | undefined;

  constructor(options: SendQueueOptions, report: Report) {
    this.#options = options;
    this.#report = report;
    this.#batchCallsMax = options.batchCallsMax;
    this.#before = this.#adopt();
    document?.addEventListener('visibilitychange', this.#onVisibility);
  }

  add(call: QueuedCall): void {
    const { store, queueCallsMax } = this.#options;
    if (this.#isClosed) {
      this.#report('not_delivered', 'closed', 1, call);
      return;
    }
    const entry = createEntry(call);
    this.#bytes += entry.bytes;
    this.#queue.push(entry);
    store?.add(call);
    while (this.#queue.length > queueCallsMax || this.#bytes > QUEUE_BYTES_MAX) {
      const dropped = this.#queue.splice(
        this.#queue.findIndex(({ sent }) => sent === undefined),
        1,
      );
      this.#bytes -= bytesOf(dropped);
      this.#overflow += 1;
      store?.remove(dropped);
    }
    this.#schedule();
  }

  /** @returns how many of the calls made so far are undelivered, after `timeoutMs` at most */
  async flush({ timeoutMs = FLUSH_TIMEOUT_MS }: FlushOptions = {}): Promise<number> {
    let timer: Timer | undefined;
    const timeout = new Promise<true>((resolve) => {
      // The only timer that keeps a process alive: somebody waits for this method.
      timer = setTimeout(resolve, Math.min(timeoutMs, DELAY_MS_MAX), true);
    });
    await Promise.race([timeout, this.#before]);
    const calls = new Set(this.#queue);
    const undelivered = () => this.#queue.filter((call) => calls.has(call)).length;
    this.#hurry();
    while (undelivered() && !(await Promise.race([timeout, this.#step])));
    clearTimeout(timer);
    return undelivered();
  }

  /** Flushes, and ends. @returns how many calls are undelivered, after `timeoutMs` at most */
  async close(limit?: FlushOptions): Promise<number> {
    this.#isClosed = true;
    const left = await this.flush(limit);
    document?.removeEventListener('visibilitychange', this.#onVisibility);
    this.#queue = [];
    this.#request?.abort();
    if (left) this.#report('not_delivered', `${left} calls`, this.#overflow + (this.#options.store ? 0 : left));
    return left;
  }

  /** All calls so far do not wait for a full batch. */
  #hurry(): void {
    for (const call of this.#queue) call.isDue = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isRunning || this.#queue.length === 0) return;
    if (this.#isDue()) void this.#run();
    else {
      this.#ageTimer ??= later(() => {
        this.#ageTimer = undefined;
        this.#hurry();
      }, this.#options.batchAgeMsMax);
    }
  }

  #isDue(): boolean | undefined {
    const oldest = this.#queue[0];
    return oldest && (oldest.isDue || this.#queue.length >= this.#batchCallsMax || this.#bytes >= BATCH_BYTES_MAX);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    clearTimeout(this.#ageTimer);
    this.#ageTimer = undefined;
    do {
      this.#step = this.#sendAndWait();
      await this.#step;
    } while (this.#isDue());
    this.#isRunning = false;
    this.#schedule();
  }

  async #sendAndWait(): Promise<void> {
    await this.#before;
    const delayMs = await this.#send();
    const dropped = this.#overflow;
    this.#overflow = 0;
    if (dropped) this.#report('queue_full', `${dropped} calls`, dropped);
    if (delayMs > 0) await new Promise<void>((resolve) => later(resolve, delayMs));
  }

  /** Sends the oldest calls. @returns how long to wait before the next request, in milliseconds */
  async #send(): Promise<number> {
    const oldest = this.#queue.slice(0, this.#batchCallsMax || 1);
    // The first is sent alone if it is larger than a batch.
    const calls = oldest.slice(0, fitting(oldest, BATCH_BYTES_MAX).length || 1);
    if (calls.length === 0) return 0;
    for (const call of calls) call.sent = false;
    const { status, retryAfter, success, message } = await this.#post(calls, await compress(batchBody(calls)));
    if (success || this.#queue.length === 0) return 0;
    // One of these calls may be what the service, or a proxy before it, does not accept.
    if (status === 413 || status === 400) {
      this.#batchCallsMax = Math.ceil(calls.length / 2);
      if (
        !calls[1] &&
        // 400 may be the response to everything: a call is at fault if it gets it again, and an empty batch does not.
        (status === 413 || ((await this.#post([])).success && (await this.#post(calls)).status === 400))
      ) {
        this.#remove(calls);
        this.#report('rejected', message, 1, calls[0], status);
      }
      if (status === 413) return 0;
    }
    this.#failures += 1;
    this.#report('request_failed', `${status} ${message}`, 0, undefined, status);
    return retryDelayMs(this.#failures, retryAfter, Date.now());
  }

  /** Sends calls once. What the service has leaves the queue. Status 0: there was no response. */
  async #post(
    calls: readonly Entry[],
    body: string | ArrayBuffer = batchBody(calls),
  ): Promise<Answer & { readonly status: number; readonly retryAfter: string | null | undefined }> {
    const options = this.#options;
    for (const call of calls) call.sent = true;
    const request = new AbortController();
    const timer = later(() => request.abort('timeout'), REQUEST_TIMEOUT_MS);
    let response: Response | undefined;
    let answer: Answer;
    this.#request = request;
    try {
      response = await fetch(options.url, {
        ...{
          method: 'POST',
          body,
          keepalive: canKeepAlive && this.#bytes - bytesOf(this.#queue.filter(isWaiting)) <= KEEPALIVE_BYTES_MAX,
          signal: request.signal,
        },
        headers: { authorization: `Bearer ${options.key}` },
        // A redirect is a mistake in the address: a POST would become a GET.
        redirect: 'manual',
      });
      answer = (await response.json()) as Answer;
      if (answer.success) {
        this.#failures = 0;
        this.#batchCallsMax = Math.min(this.#batchCallsMax + 1, options.batchCallsMax);
        for (const { index, message } of answer.rejected ?? []) this.#report('rejected', message, 1, calls[index]);
        this.#remove(calls);
      }
    } catch (error) {
      answer = { message: (error as Error).cause ?? error };
    }
    clearTimeout(timer);
    for (const call of calls) call.sent = undefined;
    return { ...answer, status: response?.status ?? 0, retryAfter: response?.headers.get('retry-after') };
  }

  /** Hands to the browser what it does not have yet. Nothing may be waited for: the page may be gone. */
  readonly #onVisibility = (): void => {
    if (document?.visibilityState !== 'hidden') return;
    const waiting = this.#queue.filter(isWaiting);
    const calls = fitting(waiting, KEEPALIVE_BYTES_MAX - this.#bytes + bytesOf(waiting));
    if (!calls[0]) return;
    if (canKeepAlive) this.#before = Promise.all([this.#before, this.#post(calls)]);
    // There is no response to a beacon: these calls stay in the queue.
    else
      navigator.sendBeacon(`${this.#options.url}?writeKey=${encodeURIComponent(this.#options.key)}`, batchBody(calls));
  };

  /** The service has these calls, or they are dropped. */
  #remove(calls: readonly Entry[]): void {
    const removed = new Set(calls);
    this.#queue = this.#queue.filter((call) => !removed.has(call));
    this.#bytes = bytesOf(this.#queue);
    this.#options.store?.remove(calls);
  }

  /** Takes over the calls of earlier pages. */
  async #adopt(): Promise<void> {
    const calls = (await this.#options.store?.load()) ?? [];
    this.#queue.unshift(...calls.map((call) => ({ ...createEntry(call), isDue: true })));
    this.#bytes = bytesOf(this.#queue);
    this.#schedule();
  }
}

/** A call in the queue. */
interface Entry extends QueuedCall {
  /** The size of its JSON. */
  readonly bytes: number;
  /** Whether it is sent without waiting for a full batch. */
  isDue?: boolean;
  /** Whether its request is in flight, or (`false`) still being compressed. Default: there is none; only such calls are dropped. */
  sent?: boolean | undefined;
}

function createEntry(call: QueuedCall): Entry {
  return { ...call, bytes: new TextEncoder().encode(call.text).length };
}

function isWaiting({ sent }: Entry): boolean {
  return !sent;
}

function bytesOf(calls: readonly Entry[]): number {
  return calls.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Returns the first calls, as many as have `bytesMax` bytes at most together, with a comma each. */
function fitting(calls: readonly Entry[], bytesMax: number): Entry[] {
  let left = bytesMax;
  return calls.filter(({ bytes }) => {
    left -= bytes + 1;
    return left >= 0;
  });
}

/** The body of `POST /v1/batch`. */
function batchBody(calls: readonly Entry[]): string {
  return `{"batch":[${calls.map(({ text }) => text)}]}`;
}

/** Compresses a body where that is worth it, and possible. The service recognises gzip without a header. */
async function compress(text: string): Promise<string | ArrayBuffer> {
  if (text.length < GZIP_CHARACTERS_MIN || !globalThis.CompressionStream) return text;
  return await new Response(new Response(text).body?.pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
}

/** What the service responds: the members of a success, or of a problem. */
interface Answer {
  /** Whether the service has every call but those in `rejected`. A status of 200 may be a proxy's. */
  readonly success?: boolean;
  readonly rejected?: readonly { readonly index: number; readonly message: string }[];
  /** Or why there is no response. */
  readonly message?: unknown;
}

type Timer = ReturnType<typeof setTimeout>;

/** Like `setTimeout`, but does not keep a Node.js process alive. */
function later(callback: () => void, delayMs: number): Timer {
  const timer = setTimeout(callback, delayMs);
  // In a browser it is a number.
  (timer as { unref?(): void }).unref?.();
  return timer;
}

const BASE_MS = 500;

const BACKOFF_MS_MAX = 30_000;

/** A proxy's mistake, or a wrong clock of this machine, must not silence a client for longer. */
const RETRY_AFTER_MS_MAX = 300_000;

/**
 * Returns how long to wait before the next request, in milliseconds: exponential backoff with full jitter, after what
 * `Retry-After` asks for, which is 5 minutes at most.
 *
 * @param failures requests that failed in a row, at least 1
 * @param retryAfter the header: seconds, or an HTTP date; anything else counts as none
 * @param now in milliseconds since 1970
 */
export function retryDelayMs(failures: number, retryAfter: string | null | undefined, now: number): number {
  const seconds = Number(retryAfter);
  const askedMs = (seconds >= 0 ? seconds * 1_000 : Date.parse(retryAfter as string) - now) || 0;
  const jitterMs = Math.random() * Math.min(BACKOFF_MS_MAX, BASE_MS * 2 ** failures);
  return Math.min(RETRY_AFTER_MS_MAX, Math.max(0, askedMs)) + jitterMs;
}
