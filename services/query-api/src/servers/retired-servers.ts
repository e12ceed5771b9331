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
    // Nobody waits any longer for one that does not respond.
    const isSilent = server.isAway || server.silentSince !== undefined;
    this.#timers.set(
      server,
      setTimeout(() => void this.#end(server), isSilent ? 0 : RETIRED_MS),
    );
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
