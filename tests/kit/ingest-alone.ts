import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { hashKey, SCOPES, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { type Service, startService } from './service.ts';

/** A process of ingest-api on a real Kafka, without the other services. The key of each workspace is its name. */
export interface IngestAlone extends AsyncDisposable {
  readonly service: Service;
  /** Resolves with the status of the response; rejects when the connection is cut. */
  submit(body: Buffer | string, options?: SubmitOptions): Promise<number>;
  /** Resident memory now, and its peak, in bytes. */
  memory(): Promise<{ readonly now: number; readonly peak: number }>;
}

export interface SubmitOptions {
  /** Default: the first workspace. */
  readonly workspace?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface IngestAloneOptions {
  readonly kafkaBrokers: readonly string[];
  /** Prefix of the topics, which no other test on the same Kafka may use. */
  readonly name: string;
  readonly workspaces?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Wait until it is ready. Default true. */
  readonly ready?: boolean;
}

export async function startIngestAlone(options: IngestAloneOptions): Promise<IngestAlone> {
  const { kafkaBrokers, name, workspaces = ['test'], env, ready = true } = options;
  const folder = await mkdtemp(join(tmpdir(), 'sluice-ingest-'));
  const keysFile = join(folder, 'keys.json');
  const keys = workspaces.map((workspace) => ({
    id: workspace,
    hash: hashKey(workspace),
    workspace,
    scopes: [...SCOPES],
  }));
  await writeKeysFile(keysFile, keys);
  const [port = 0] = await findFreePorts(1);
  const service = startService('ingest-api', port, {
    KAFKA_BROKERS: kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: `${name}.`,
    // Fewer than the default, as in pipeline.ts.
    KAFKA_PARTITIONS: '6',
    API_KEYS_FILE: keysFile,
    ...env,
  });
  const stop = async () => {
    await service.kill9();
    await rm(folder, { recursive: true, force: true });
  };
  if (ready) {
    await service.ready().catch(async (error) => {
      await stop();
      throw error;
    });
  }
  return {
    service,
    async submit(body, { workspace = workspaces[0], headers } = {}) {
      const response = await fetch(`${service.url}/v1/public/userGroups`, {
        method: 'POST',
        headers: { authorization: `Bearer ${workspace}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : new Uint8Array(body),
      });
      await response.arrayBuffer();
      return response.status;
    },
    async memory() {
      const status = await readFile(`/proc/${service.pid}/status`, 'utf8');
      const bytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1_024;
      return { now: bytes('VmRSS'), peak: bytes('VmHWM') };
    },
    [Symbol.asyncDispose]: stop,
  };
}
