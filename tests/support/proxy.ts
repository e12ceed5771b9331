import { type Fate, startTcpProxy } from './tcp-proxy.ts';

/** A proxy that can lose answers: what was asked has been done, but the asker does not hear of it. */
export interface AnswerProxy extends AsyncDisposable {
  readonly url: string;
  readonly lost: number;
  stop(): Promise<void>;
}

/**
 * Starts a proxy in front of an HTTP server. `decide` is asked when an answer begins to come: `cut` closes the
 * connection instead, `stall` leaves it open without another byte. `settings` gives what is added to the parameters of
 * each request that does not have it: for ClickHouse that is the same as an account whose profile says so.
 */
export async function startProxy(
  targetUrl: string,
  decide: () => Fate,
  settings: () => Readonly<Record<string, string>> = () => ({}),
): Promise<AnswerProxy> {
  const target = new URL(targetUrl);
  let lost = 0;

  const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) }, (client, upstream) => {
    let asked = false;
    let stalled = false;
    client.on('data', (chunk: Buffer) => {
      asked = true;
      upstream.write(withSettings(chunk, settings()));
    });
    upstream.on('data', (chunk: Buffer) => {
      if (stalled) return;
      const fate = asked ? decide() : 'deliver';
      asked = false;
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

/** The beginning of a request, with more parameters; anything else as it is. */
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
