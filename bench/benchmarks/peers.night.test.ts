import { expect, test } from 'vitest';
import { PEERS } from './peers.ts';

test('Sluice and a bare pipe are measured, killed and counted, and a row says why a peer is absent', async () => {
  const size = { rounds: 1, seconds: 1, kills: 1, rate: 100 };
  const figures = await PEERS.measure(size, { only: ['sluice', 'pipe', 'connect'] });
  const of = (row: string, column: string) => figures.find((figure) => figure.row === row && figure.column === column);
  for (const row of ['Sluice', 'bare pipe']) {
    for (const column of ['events stored', 'ingest', 'Kafka', 'ClickHouse', 'visible, p99', 'acknowledged']) {
      expect(of(row, column)?.value, `${row}: ${column}`).toBeGreaterThan(0);
    }
  }
  expect(of('Sluice', 'sink')?.value).toBeGreaterThan(0);
  expect(of('bare pipe', 'sink')?.absent).toBe('in ClickHouse');
  expect(of('bare pipe', '÷ the bare pipe')?.value).toBe(1);
  expect(of('Sluice', '÷ the bare pipe')?.bar).toEqual({ atMost: 1.3 });
  expect(of('Sluice', 'lost')).toMatchObject({ value: 0, bar: { atMost: 0 } });
  expect(of('Sluice', 'doubled')).toMatchObject({ value: 0, bar: { atMost: 0 } });
  expect(of('bare pipe', 'lost')?.value).toBeGreaterThanOrEqual(0);
  expect(of("Kafka Connect with ClickHouse's sink", 'why')?.absent).toContain('Maven Central');
});
