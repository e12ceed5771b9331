import { AUDIT } from './benchmarks/audit.ts';
import { BYTES } from './benchmarks/bytes.ts';
import { CONSOLE } from './benchmarks/console.ts';
import { COPY } from './benchmarks/copy.ts';
import { CURVE } from './benchmarks/curve.ts';
import { DASHBOARDS } from './benchmarks/dashboards.ts';
import { DECLARED_PROPERTIES } from './benchmarks/declared.ts';
import { EXACTNESS } from './benchmarks/exactness.ts';
import { EXPORT_BENCHMARK } from './benchmarks/export.ts';
import { IDENTITY } from './benchmarks/identity.ts';
import { INGEST } from './benchmarks/ingest.ts';
import { LATENCY } from './benchmarks/latency.ts';
import { LINKS } from './benchmarks/links.ts';
import { MEMORY } from './benchmarks/memory.ts';
import { OWNERS } from './benchmarks/owners.ts';
import { PEERS } from './benchmarks/peers.ts';
import { PIPELINE } from './benchmarks/pipeline.ts';
import { QUERY } from './benchmarks/query.ts';
import { SCALE } from './benchmarks/scale.ts';
import { SERVERS } from './benchmarks/servers.ts';
import type { Benchmark } from './report/benchmark.ts';

/** All benchmarks, in the order of docs/design/performance.md: it has a table for each. */
export const BENCHMARKS: readonly Benchmark[] = [
  PIPELINE,
  PEERS,
  CURVE,
  INGEST,
  LATENCY,
  MEMORY,
  EXACTNESS,
  QUERY,
  SCALE,
  BYTES,
  DASHBOARDS,
  DECLARED_PROPERTIES,
  OWNERS,
  IDENTITY,
  LINKS,
  EXPORT_BENCHMARK,
  CONSOLE,
  SERVERS,
  COPY,
  AUDIT,
];
