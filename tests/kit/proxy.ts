import { type Fate, startTcpProxy } from './tcp-proxy.ts';

/** A proxy that can lose responses: the server has done its work, and the client does not know. */
export interface ResponseProxy extends AsyncDisposable {
  readonly url: string;
  readonly lost: number;
  stop(): Promise<void>;
}

/**
 * Starts a proxy in front of an HTTP server.
 *
 * @param decide called when a response begins: `cut` closes the connection instead, `stall` leaves it open without
 *   another byte
 * @param settings returns parameters that are added to each request that does not have them; for ClickHouse that is the
 *   same as a profile of the account with these settings
 */
export async function startProxy(
  targetUrl: string,
  decide: () => Fate,
  settings: () => Readonly<Record<string, string>> = () => ({}),
): Promise<ResponseProxy> {
  const target = new URL(targetUrl);
  let lost = 0;

  const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) }, (client, upstream) => {
    let pending = false;
    let stalled = false;
    client.on('data', (chunk: Buffer) => {
      pending = true;
      upstream.write(withSettings(chunk, settings()));
    });
    upstream.on('data', (chunk: Buffer) => {
      if (stalled) return;
      const fate = pending ? decide() : 'deliver';
      pending = false;
      if (fate === 'deliver') {
        client.write(chunk);
        return;
      }
      lost += 1;
      if (fate === 'cut') client.destroy();
      else stalled = true;
    });
  });
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    get lost() {
      return lost;
    },
    stop: proxy.stop,
    [Symbol.asyncDispose]: proxy.stop,
  };
}

/** Adds parameters to the first line of a request. Returns any other chunk as it is. */
function withSettings(chunk: Buffer, settings: Readonly<Record<string, string>>): Buffer {
  const names = Object.keys(settings);
  if (names.length === 0) return chunk;
  const [start = ''] = chunk.toString('latin1', 0, chunk.indexOf(0x0d)).split('\r', 1);
  const [, method, query] = /^(GET|POST) \/\?(\S*) HTTP\/1\.1$/.exec(start) ?? [];
  if (query === undefined) return chunk;
  const given = new URLSearchParams(query);
  const added = new URLSearchParams(
    names.filter((name) => !given.has(name)).map((name) => [name, settings[name] ?? '']),
  );
  if (added.size === 0) return chunk;
  return Buffer.concat([Buffer.from(`${method} /?${added}&${query} HTTP/1.1`, 'latin1'), chunk.subarray(start.length)]);
}
