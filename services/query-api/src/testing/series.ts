import { expect, inject, onTestFinished } from 'vitest';
import type { SeriesReport } from '../reports/series/series.ts';
import type { ClickHouseReader } from '../store/clickhouse-reader.ts';
import { type QueryService, startQuery } from './query-service.ts';

/** `storeMany` stores one event a second from here on. */
export const SERIES_START = 'startDate=2026-03-01';

/** Starts the service until the test has finished. */
export async function startService(
  env: Readonly<Record<string, string>>,
  wrapReader?: (reader: ClickHouseReader) => ClickHouseReader,
): Promise<QueryService> {
  const service = await startQuery(inject('clickhouseUrl'), env, wrapReader);
  onTestFinished(() => service.stop());
  return service;
}

/** Returns a series, which has to be answered. */
export async function readSeries(service: QueryService, parameters: string): Promise<SeriesReport> {
  const { status, text } = await service.get(`/events/series?${parameters}`);
  expect([status, text]).toEqual([200, text]);
  return JSON.parse(text) as SeriesReport;
}
