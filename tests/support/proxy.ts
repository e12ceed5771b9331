import { type Fate, startTcpProxy } from './tcp-proxy.ts';

/** A proxy that can lose answers: what was asked has been done, but the asker does not hear of it. */
export interface AnswerProxy extends AsyncDisposable {
  readonly url: string;
  readonly lost: number;
  stop(): Promise<void>;
}

/**
 * Starts a proxy in front of an HTTP server. `decide` is asked when an answer begins to come: `cut` closes the
 * connection instead, `stall` leaves it open without another byte.
 */
export async function startProxy(targetUrl: string, decide: () => Fate): Promise<AnswerProxy> {
  const target = new URL(targetUrl);
  let lost = 0;

  const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) }, (client, upstream) => {
    let asked = false;
    let stalled = false;
    client.on('data', (chunk) => {
      asked = true;
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
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
