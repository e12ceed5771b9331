import { Gauge, type Registry } from 'prom-client';

export interface ReadGaugeOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** How the values of several workers of a service become one. Default: `max`. */
  readonly ofWorkers?: 'max' | 'min';
}

/** A value of a gauge, with the values of its labels. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * Declares a gauge that is read whenever the metrics are. It has the series that `read` returns, and no others: what is
 * not known is absent, and never 0 or an older value.
 *
 * @param read never throws
 */
export function declareReadGauge(
  registry: Registry,
  { name, help, labelNames = [], ofWorkers = 'max' }: ReadGaugeOptions,
  read: () => Promise<readonly Sample[]> | readonly Sample[],
): void {
  const gauge: Gauge = new Gauge({
    ...{ name, help, labelNames, aggregator: ofWorkers },
    registers: [registry],
    async collect() {
      const samples = await read();
      gauge.reset();
      // A gauge without labels is 0 after a reset.
      if (labelNames.length === 0) gauge.remove();
      for (const { labels = {}, value } of samples) gauge.set({ ...labels }, value);
    },
  });
}
