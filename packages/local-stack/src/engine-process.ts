import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalStackError } from './errors.ts';
import { GUARD_RELEASE } from './process-guard.ts';

const POLL_INTERVAL_MS = 50;
const LOG_BYTES_MAX = 16 * 1024 * 1024;
const READY_TIMEOUT_MS = 180_000;
const LOG_TAIL_LINES = 20;

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface EngineProcessSpec {
  /** For messages: "Kafka broker 1". */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Standard output and error are appended to it. At the start, a file over 16 MiB is renamed to `<file>.1`. */
  readonly logFile: string;
  /** Called with the process id before the first probe. */
  readonly onSpawn?: (pid: number) => Promise<void>;
  /** Resolves when the engine answers; it is retried until the deadline. */
  readonly probe: (signal: AbortSignal) => Promise<void>;
  /** Finds a better error in the log of this start when the engine ended while starting. */
  readonly explain?: (log: string) => Promise<LocalStackError | undefined>;
  /** How long the start may take, in milliseconds. Default 180,000: it only ends one that hangs, also on a busy machine. */
  readonly readyTimeoutMs?: number | undefined;
  /** Cancels the start: the engine is stopped, and the signal's reason is thrown. */
  readonly signal?: AbortSignal | undefined;
  /** From SIGTERM to SIGKILL. */
  readonly stopTimeoutMs: number;
}

/** A running engine. `stop` and `kill9` may be called at any time, also twice. */
export interface EngineProcess {
  readonly pid: number;
  readonly exited: Promise<ExitStatus>;
  /** SIGTERM, then SIGKILL after `stopTimeoutMs`. Resolves when the process has ended. */
  stop(): Promise<void>;
  /** SIGKILL. Resolves when the process has ended. */
  kill9(): Promise<void>;
}

/**
 * Starts an engine as a process of its own and waits until its probe succeeds.
 *
 * The process has a process group of its own, so that Ctrl-C reaches only the parent. Its standard input is a pipe; when
 * it ends, the parent has ended.
 *
 * @throws LocalStackError ENGINE_EXITED or ENGINE_NOT_READY with the end of the log, or what `explain` returns
 */
export async function startEngineProcess(spec: EngineProcessSpec): Promise<EngineProcess> {
  const log = openLog(spec.logFile);
  const engine = superviseChild(await spawnWithLog(spec, log.fd), spec.stopTimeoutMs);
  try {
    await spec.onSpawn?.(engine.pid);
    await waitUntilReady(spec, engine, log.size);
    return engine;
  } catch (error) {
    await (spec.signal?.aborted ? engine.stop() : engine.kill9());
    throw error;
  }
}

function openLog(logFile: string): { readonly fd: number; readonly size: number } {
  mkdirSync(dirname(logFile), { recursive: true });
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(logFile, `${logFile}.1`);
  return { fd: openSync(logFile, 'a', 0o600), size: size > LOG_BYTES_MAX ? 0 : size };
}

async function spawnWithLog(spec: EngineProcessSpec, log: number): Promise<ChildProcess> {
  try {
    const stdio: StdioOptions = ['pipe', log, log];
    const child = spawn(spec.command, spec.args, { cwd: spec.cwd, stdio, detached: true });
    await once(child, 'spawn');
    return child;
  } finally {
    closeSync(log);
  }
}

/**
 * The handle of a child that has a pipe as standard input.
 *
 * @param stopTimeoutMs from SIGTERM to SIGKILL.
 */
export function superviseChild(child: ChildProcess, stopTimeoutMs: number): EngineProcess {
  const { pid, stdin } = child;
  if (pid === undefined || !stdin) throw new Error('the engine has no process id or no standard input');
  // The engine may have ended before the line is written.
  stdin.on('error', () => {});
  const exited = new Promise<ExitStatus>((resolve) => {
    child.once('exit', (code, signal) => {
      stdin.end(GUARD_RELEASE);
      resolve({ code, signal });
    });
  });
  const kill9 = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const deadline = new AbortController();
    const ended = exited.finally(() => deadline.abort());
    const overdue = sleep(stopTimeoutMs, undefined, { signal: deadline.signal }).then(kill9, () => {});
    await Promise.all([ended, overdue]);
  };
  return { pid, exited, stop, kill9 };
}

async function waitUntilReady(spec: EngineProcessSpec, engine: EngineProcess, logStart: number): Promise<void> {
  const { readyTimeoutMs = READY_TIMEOUT_MS } = spec;
  const deadline = AbortSignal.timeout(readyTimeoutMs);
  const gone = new AbortController();
  const exit = engine.exited.then((status) => {
    gone.abort();
    return status;
  });
  const signal = AbortSignal.any([deadline, gone.signal, ...(spec.signal ? [spec.signal] : [])]);
  let lastError: unknown;
  while (!signal.aborted) {
    try {
      await spec.probe(signal);
      // While this engine fails to start, another server on the same port may have answered the probe.
      if (!gone.signal.aborted) return;
    } catch (error) {
      lastError = error;
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
  spec.signal?.throwIfAborted();
  const log = await readLog(spec.logFile, logStart);
  const tail = log.trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  if (gone.signal.aborted) {
    const explained = await spec.explain?.(log);
    if (explained) throw explained;
    const { code, signal: killer } = await exit;
    const how = killer ? `was ended by ${killer}` : `ended with exit code ${code}`;
    throw new LocalStackError('ENGINE_EXITED', `${spec.name} ${how} while starting. End of ${spec.logFile}:\n${tail}`);
  }
  throw new LocalStackError(
    'ENGINE_NOT_READY',
    `${spec.name} was not ready after ${readyTimeoutMs} ms (${String(lastError)}). End of ${spec.logFile}:\n${tail}`,
    { cause: lastError },
  );
}

async function readLog(logFile: string, start: number): Promise<string> {
  const bytes = await readFile(logFile);
  return bytes.subarray(start).toString();
}
