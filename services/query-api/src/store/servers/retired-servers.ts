import type { PolledServer } from './polled-server.ts';

/** For how long requests go on reading a server that is out of the file, in milliseconds. */
const RETIRED_MS = 60_000;

/** Servers that are out of the file. No request begins to read them; those that have begun go on for a minute at most. */
export class RetiredServers {
  readonly #timers = new Map<PolledServer, NodeJS.Timeout>();

  get servers(): readonly PolledServer[] {
    return [...this.#timers.keys()];
  }

  add(server: PolledServer): void {
    this.#timers.set(
      server,
      setTimeout(() => void this.#end(server), RETIRED_MS),
    );
  }

  /** Ends those that do not respond: nobody waits for them any longer. */
  look(): void {
    for (const server of this.servers) if (server.isAway || server.silentSince !== undefined) void this.#end(server);
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => this.#end(server)));
  }

  async #end(server: PolledServer): Promise<void> {
    clearTimeout(this.#timers.get(server));
    this.#timers.delete(server);
    server.giveUp();
    await server.stop();
  }
}
