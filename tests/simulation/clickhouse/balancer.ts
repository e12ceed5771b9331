import type { Random } from '../world/random.ts';
import type { Address, Request, SimulatedClickHouse } from './simulated-clickhouse.ts';
import type { Result } from './statements.ts';

/** An address behind which there are servers that share nothing. It has the name of the first one, which alone answers unless told otherwise. */
export class Balancer implements Address {
  readonly isUp = true;
  readonly #servers: readonly [SimulatedClickHouse, SimulatedClickHouse];
  readonly #random: Random;
  #answering = 0;
  /** How likely a request goes to another server than the one before. */
  turns = 0;
  /** The name of a statement that goes to the other server, once. */
  straying: string | undefined;

  constructor(servers: readonly [SimulatedClickHouse, SimulatedClickHouse], random: Random) {
    this.#servers = servers;
    this.#random = random;
  }

  get name(): string {
    return this.#servers[0].name;
  }

  /** Leads to one of the servers from here on. */
  leadTo(index: 0 | 1): void {
    this.#answering = index;
    this.turns = 0;
    this.straying = undefined;
  }

  async run(request: Request): Promise<Result> {
    if (this.turns > 0 && this.#random.isTrue(this.turns)) this.#answering = 1 - this.#answering;
    const strays = request.name === this.straying;
    if (strays) this.straying = undefined;
    const server = this.#servers[strays ? 1 - this.#answering : this.#answering] as SimulatedClickHouse;
    if (!server.isUp) throw new Error('connect ECONNREFUSED');
    return await server.run(request);
  }
}
