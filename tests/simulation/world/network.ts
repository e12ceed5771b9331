import type { Random } from './random.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { VirtualTime } from './virtual-time.ts';
import { Watches } from './watches.ts';

/** What is wrong with the connection of a process to a server. */
export type LinkFault =
  /** Connections cannot be opened, and those that are open break. */
  | 'down'
  /** Requests arrive, but no response comes back: the client waits until it gives up. */
  | 'silent'
  /** Requests arrive, and the connection breaks before the response. */
  | 'cut'
  /** Requests and responses take long. */
  | 'slow';

/** How long a request or a response takes at most on a slow connection, in milliseconds. */
const SLOW_MS = 9_000;

/** The connection broke, or could not be opened. */
export class ConnectionBroken extends Error {
  override readonly name = 'ConnectionBroken';

  /** @param wasSent whether the request may have arrived */
  constructor(wasSent: boolean) {
    super(wasSent ? 'the connection was closed' : 'the connection was refused');
  }
}

/** No response came in time. */
export class ResponseTooLate extends Error {
  override readonly name = 'ResponseTooLate';
}

/** A request that is under way. */
export interface Request {
  readonly process: SimulatedProcess | undefined;
  readonly server: string;
  /** What it asks for: the name of a statement, or of a method of a connection to a broker. */
  readonly what: string;
  readonly fail: (error: Error) => void;
  /** Lets it arrive that was held; undefined for one that is not. */
  release: (() => void) | undefined;
}

/** Carries requests of processes to servers, and responses back, each after some delay. */
export class Network {
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #faults = new Map<string, LinkFault>();
  readonly #open = new Set<Request>();
  readonly #held = new Set<Request>();
  /** What has not arrived yet. */
  readonly #underWay = new Set<Request>();
  readonly watches = new Watches();
  /** There are no more faults. */
  isMended = false;

  constructor(time: VirtualTime, random: Random) {
    this.#time = time;
    this.#random = random;
  }

  /** Breaks the connection of a process to a server, or mends it. */
  set(process: string, server: string, fault: LinkFault | undefined): void {
    const link = linkOf(process, server);
    if (fault === undefined) this.#faults.delete(link);
    else this.#faults.set(link, fault);
    if (fault === 'down') this.#breakOpen((request) => request.process?.name === process && request.server === server);
  }

  /** Ends all faults, for good. */
  mendAll(): void {
    this.isMended = true;
    this.watches.clear();
    this.#faults.clear();
    for (const request of this.#held) this.release(request);
  }

  /**
   * Keeps a request that is being sent from arriving.
   *
   * @param breaks whether its client is told at once that the connection broke
   */
  hold(request: Request, breaks: boolean): void {
    this.#held.add(request);
    if (breaks) this.#time.after(this.#delayMs(), () => request.fail(new ConnectionBroken(true)), request.process);
  }

  /** A request that is held never arrives. */
  lose(request: Request): void {
    request.release = undefined;
  }

  /** What these processes have sent and is under way never arrives. */
  loseAllOf(processes: readonly string[]): void {
    for (const requests of [this.#held, this.#underWay]) {
      for (const request of requests) if (processes.includes(request.process?.name ?? '')) requests.delete(request);
    }
  }

  /** Lets a request arrive that was held. Its client may be gone by now. */
  release(request: Request): void {
    if (this.#held.delete(request)) request.release?.();
  }

  /** Breaks the connections of a server that is gone: what it has not answered fails. */
  breakServer(server: string): void {
    this.#breakOpen((request) => request.server === server);
  }

  /**
   * Sends a request, and returns what the server responds with.
   *
   * @param what the name of what it asks for
   * @param serve runs on the server
   * @param timeoutMs after which the client gives up
   * @throws {ConnectionBroken}
   * @throws {ResponseTooLate}
   * @throws what `serve` throws
   */
  request<Response>(
    server: string,
    what: string,
    serve: () => Promise<Response>,
    timeoutMs: number,
  ): Promise<Response> {
    const { process } = this.#time;
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        if (!this.#open.delete(request)) return;
        stopWaiting();
        settle();
      };
      const request: Request = {
        ...{ process, server, what, release: undefined },
        fail: (error) => finish(() => reject(error)),
      };
      const later = (ms: number, run: () => void) => this.#time.after(ms, run, process);
      const stopWaiting = later(timeoutMs, () => request.fail(new ResponseTooLate('no response came in time')));
      this.#open.add(request);
      const fault = () => this.#faults.get(linkOf(process?.name ?? '', server));
      if (fault() === 'down') {
        later(this.#delayMs(), () => request.fail(new ConnectionBroken(false)));
        return;
      }
      const respond = (settle: () => void) => {
        this.watches.notice(request, 'served');
        // The response of a server whose connections broke meanwhile has nowhere to go.
        if (!this.#open.has(request)) return;
        const before = fault();
        if (before === 'silent') return;
        if (before === 'cut') later(this.#delayMs(), () => request.fail(new ConnectionBroken(true)));
        else later(this.#delayMs() + (before === 'slow' ? this.#random.between(0, SLOW_MS) : 0), () => finish(settle));
      };
      // A request that is on its way arrives, though its client may have given up or be gone.
      const late = fault() === 'slow' && this.#random.isTrue(0.5) ? this.#random.between(0, SLOW_MS) : 0;
      const arrive = () => {
        if (!this.#underWay.delete(request)) return;
        this.watches.notice(request, 'arrived');
        this.#time.runAs(undefined, serve).then(
          (response) => respond(() => resolve(response)),
          (error) => respond(() => reject(error)),
        );
      };
      this.#underWay.add(request);
      request.release = () => this.#time.after(this.#delayMs() + late, arrive);
      this.watches.notice(request, 'sent');
      if (!this.#held.has(request)) request.release();
    });
  }

  #breakOpen(which: (request: Request) => boolean): void {
    for (const request of [...this.#open].filter(which)) {
      this.#time.after(this.#delayMs(), () => request.fail(new ConnectionBroken(true)), request.process);
    }
  }

  #delayMs(): number {
    return this.#random.between(0.1, 2);
  }
}

function linkOf(process: string, server: string): string {
  return `${process} → ${server}`;
}
