import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { type EngineProcess, superviseChild } from '@sluice/local-stack/engine-process';
import { guardCommand } from '@sluice/local-stack/process-guard';
import { explain, until } from '@sluice/shared/testing/until';
import type { PeerProcess } from './peer.ts';

const STOP_TIMEOUT_MS = 5_000;

/** How much of a log is shown where a process does not get ready, in characters. */
const LOG_TAIL = 2_000;

interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** What it writes goes there. */
  readonly logFile: string;
  /** Any response of it says that the process is ready. */
  readonly url: string;
}

/** A process of a peer, which is started again whenever it ends, as a supervisor does. It ends with this process. */
export class SupervisedProcess implements PeerProcess, AsyncDisposable {
  readonly #spec: ProcessSpec;
  #current: EngineProcess;
  #hasStarted = false;
  #isEnding = false;

  /** @throws {Error} with the end of its log where it ends before it is ready for the first time */
  static async start(spec: ProcessSpec): Promise<SupervisedProcess> {
    await using starting = new AsyncDisposableStack();
    const started = starting.use(new SupervisedProcess(spec));
    await started.#ready();
    starting.move();
    started.#hasStarted = true;
    return started;
  }

  private constructor(spec: ProcessSpec) {
    this.#spec = spec;
    this.#current = this.#start();
  }

  get pid(): number {
    return this.#current.pid;
  }

  async killAndRestart(): Promise<void> {
    await this.#current.kill9();
    await this.#ready();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    await this.#current.kill9();
  }

  #start(): EngineProcess {
    const { command, args, logFile } = this.#spec;
    const guarded = guardCommand(command, args);
    const log = openSync(logFile, 'a');
    const child: ChildProcess = spawn(guarded.command, guarded.args, { stdio: ['pipe', log, log], detached: true });
    closeSync(log);
    const process = superviseChild(child, STOP_TIMEOUT_MS);
    void process.exited.then(() => {
      if (!this.#hasStarted) this.#isEnding = true;
      if (!this.#isEnding) this.#current = this.#start();
    });
    return process;
  }

  async #ready(): Promise<void> {
    const { name, url, logFile } = this.#spec;
    await until(`${name} to respond`, async () => {
      if (this.#isEnding) throw new Error(`${name} has ended`);
      const response = await fetch(url).catch(() => undefined);
      await response?.arrayBuffer();
      return response !== undefined;
    }).catch(explain(() => readFileSync(logFile, 'utf8').slice(-LOG_TAIL)));
  }
}
