import { once } from 'node:events';
import { AggregatorRegistry, Registry } from 'prom-client';

const TYPE = 'metrics of all workers';

/** What a worker asks the primary process. */
export interface MetricsRequest {
  readonly type: typeof TYPE;
  readonly id: number;
}

export interface MetricsResponse extends MetricsRequest {
  /** `undefined` when they cannot be collected. */
  text: string | undefined;
}

/** The metrics of a worker. Read as text, they are those of all workers together. */
export class WorkerRegistry extends Registry {
  #asked = 0;

  constructor() {
    super();
    AggregatorRegistry.setRegistries([this]);
    // Responds to the primary process with the metrics of this worker.
    new AggregatorRegistry();
  }

  /** @throws when a worker does not respond */
  override async metrics(): Promise<string> {
    this.#asked += 1;
    const request: MetricsRequest = { type: TYPE, id: this.#asked };
    process.send?.(request);
    for (;;) {
      const [response] = (await once(process, 'message')) as [MetricsResponse];
      if (response?.type !== TYPE || response.id !== request.id) continue;
      if (response.text === undefined) throw new Error('the metrics of the workers cannot be collected');
      return response.text;
    }
  }
}
