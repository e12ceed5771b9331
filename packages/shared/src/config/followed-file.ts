import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { open } from 'node:fs/promises';

/** How often a file is checked, in milliseconds. Polling notices every change, also a mounted secret's new link. */
const POLL_INTERVAL_MS = 500;

/** How a followed file is. */
export interface FollowedFileState {
  /** When the content that is in force was written, in milliseconds since 1970; `undefined` before a valid one was read. */
  readonly modifiedMs: number | undefined;
  /** Whether the file could be used when it was last read. */
  readonly isValid: boolean;
}

export interface FollowedFileOptions<Content> {
  readonly path: string;
  /** Returns the content of a text. @throws an error whose message says why the file cannot be used */
  readonly parse: (text: string) => Content;
  /** Called with each content that comes into force. */
  readonly onContent: (content: Content) => void;
  /** Called when the file cannot be used, once for each reason. The last valid content stays in force, if there is one. */
  readonly onInvalid: (reason: string) => void;
}

/**
 * Follows a file: a change is in force within a second. When the file is broken or missing, the last valid content stays in
 * force, and the file is read again until it is valid.
 */
export class FollowedFile<Content> {
  readonly #options: FollowedFileOptions<Content>;
  /** When the file of the content was modified, in milliseconds since 1970; `undefined` until a valid one has been read. */
  #modifiedMs: number | undefined;
  /** Why the file could not be used the last time. */
  #error: string | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #stopped = false;
  // One load at a time: an older content must not replace a newer one.
  #loading = Promise.resolve();
  readonly #onChange: StatsListener = () => void this.#reload();

  constructor(options: FollowedFileOptions<Content>) {
    this.#options = options;
  }

  get state(): FollowedFileState {
    return { modifiedMs: this.#modifiedMs, isValid: this.#modifiedMs !== undefined && this.#error === undefined };
  }

  /** Resolves when the file has been read once, whether it could be used or not. */
  async start(): Promise<void> {
    watchFile(this.#options.path, { interval: POLL_INTERVAL_MS }, this.#onChange);
    await this.#reload();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    unwatchFile(this.#options.path, this.#onChange);
    await this.#loading;
    clearTimeout(this.#retryTimer);
  }

  #reload(): Promise<void> {
    clearTimeout(this.#retryTimer);
    this.#loading = this.#loading.then(() => this.#load());
    return this.#loading;
  }

  async #load(): Promise<void> {
    const { path, parse, onContent, onInvalid } = this.#options;
    try {
      const { text, modifiedMs } = await readWithTime(path);
      const content = parse(text);
      this.#modifiedMs = modifiedMs;
      this.#error = undefined;
      onContent(content);
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== this.#error) onInvalid(reason);
      this.#error = reason;
      // A file may become readable without a change that polling would notice.
      if (!this.#stopped) this.#retryTimer = setTimeout(() => void this.#reload(), POLL_INTERVAL_MS);
    }
  }
}

/** Reads a file, with the time when what is read was written. @throws the errors of the file system */
async function readWithTime(path: string): Promise<{ readonly text: string; readonly modifiedMs: number }> {
  await using file = await open(path);
  const { mtimeMs: modifiedMs } = await file.stat();
  return { text: await file.readFile('utf8'), modifiedMs };
}
