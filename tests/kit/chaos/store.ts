import type { AuditedPipeline } from '../audit.ts';
import type { Tally } from '../load.ts';
import type { Pipeline, PipelineServer } from '../pipeline.ts';
import type { Delivery } from '../verify-delivery.ts';
import type { PlannedFault } from './schedule.ts';
import type { Slots } from './slots.ts';

/** What runs beside a store. */
export interface Surroundings {
  readonly pipeline: Pipeline;
  readonly slots: Slots;
  /** Aborted when no fault may happen any more. */
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

/** Several servers, compared with each other. */
export interface Comparison {
  /** How many rows are equal on all mirrors. */
  readonly equalRows: number;
  /** Rows that are not on all mirrors. */
  readonly different: readonly string[];
}

/** Where events are stored: one ClickHouse server, or several. */
export interface ChaosStore extends AsyncDisposable {
  readonly clickhouseUrl: string;
  /** Absent: there is no file of servers. */
  readonly servers?: Readonly<Record<string, PipelineServer>>;
  /** Makes a fault of a server happen, and resolves when it is over. */
  disturb(fault: PlannedFault, surroundings: Surroundings): Promise<void>;
  /** Compares a load that has ended with what is stored and served. */
  verify(
    surroundings: Pick<Surroundings, 'pipeline' | 'slots'>,
    tally: Tally,
    cutOff: ReadonlySet<string>,
  ): Promise<{ readonly delivery: Delivery; readonly comparison?: Comparison }>;
  /** The servers, each of which is audited alone. */
  audited(pipeline: Pipeline): readonly AuditedServer[];
}

export interface AuditedServer {
  readonly name: string;
  readonly audited: AuditedPipeline;
  readonly clickhouseUrl: string;
}
