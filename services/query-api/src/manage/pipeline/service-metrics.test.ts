import { Gauge, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { samplesOf, valuesOf } from './service-metrics.ts';

test('the values of a metric are those of its name alone, whatever its labels hold', async () => {
  const registry = new Registry();
  const lag = new Gauge({ name: 'lag', help: 'lag 7', labelNames: ['topic', 'of'], registers: [registry] });
  const odd = 'a} 9,of="x\\n\n"\\';
  lag.set({ topic: odd, of: '1' }, 1.5);
  lag.set({ topic: 'b', of: '' }, 2);
  new Gauge({ name: 'lag_seconds', help: 'h', registers: [registry] }).set(40);
  const text = await registry.metrics();
  expect(samplesOf(text, 'lag')).toEqual([
    { labels: { topic: odd, of: '1' }, value: 1.5 },
    { labels: { topic: 'b', of: '' }, value: 2 },
  ]);
  expect(valuesOf(text, 'lag_seconds')).toEqual([40]);
  expect(valuesOf(text, 'la')).toEqual([]);
});
