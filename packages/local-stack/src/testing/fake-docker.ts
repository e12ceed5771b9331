import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface FakeDockerOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Whether it has every image; else no pull succeeds. */
  readonly hasImages: boolean;
}

export interface ContainerRequest {
  readonly Image: string;
  readonly Env?: readonly string[];
}

/** As much of the Docker Engine API as the start of a container needs. Containers start, except Kafka's. */
export interface FakeDocker extends AsyncDisposable {
  /** For `DOCKER_HOST`. */
  readonly url: string;
  /** The bodies of `POST /containers/create`. */
  readonly created: readonly ContainerRequest[];
  /** What was created and not removed: containers by their image, and `network`. */
  left(): readonly string[];
}

export async function startFakeDocker({ host = '127.0.0.1', hasImages }: FakeDockerOptions): Promise<FakeDocker> {
  const created: ContainerRequest[] = [];
  const left = new Map<string, string>();
  let ids = 0;

  function add(what: string): { Id: string } {
    ids += 1;
    left.set(String(ids), what);
    return { Id: String(ids) };
  }

  function inspect(id: string): object {
    const port = [{ HostIp: host, HostPort: String((server.address() as AddressInfo).port) }];
    return {
      Id: id,
      Name: `/${id}`,
      State: { Running: true, Status: 'running' },
      Config: { Labels: {}, Hostname: id },
      HostConfig: { PortBindings: { '8123/tcp': port } },
      NetworkSettings: { Ports: { '8123/tcp': port }, Networks: {} },
    };
  }

  async function answer(request: IncomingMessage): Promise<readonly [status: number, body?: object]> {
    const { method = '', url = '' } = request;
    const [path = ''] = url.split('?', 1);
    const [, kind, id = '', action] = path.split('/');
    if (path === '/info') return [200, { ServerVersion: '1', OperatingSystem: 'fake', Architecture: 'x86_64' }];
    if (path === '/ping') return [200, {}];
    if (kind === 'images') return hasImages ? [200, {}] : [404, { message: 'No such image' }];
    if (path === '/networks/create') return [201, add('network')];
    if (path === '/containers/json') return [200, []];
    if (path === '/containers/create') {
      const body = (await json(request)) as ContainerRequest;
      created.push(body);
      return [201, add(body.Image)];
    }
    if (method === 'DELETE') return left.delete(id) ? [204] : [404, { message: 'No such container' }];
    if (action === 'start' && left.get(id)?.includes('kafka')) return [500, { message: 'port is already allocated' }];
    if (kind === 'containers' && action === 'json') return [200, inspect(id)];
    return [200];
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [status, body] = await answer(request);
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body));
  }

  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, host);
  await once(server, 'listening');
  return {
    url: `tcp://${host}:${(server.address() as AddressInfo).port}`,
    created,
    left: () => [...left.values()],
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
