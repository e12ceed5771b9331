import type { LoadForm } from '../data/forms.ts';
import type { Engines } from '../processes/engines.ts';

/** A process that is started again whenever it ends. */
export interface PeerProcess {
  /** The one that runs now. */
  readonly pid: number;
  /** Sends SIGKILL, and resolves when its successor is ready. */
  killAndRestart(): Promise<void>;
}

/** Something that takes events over HTTP and stores them in ClickHouse by way of Kafka, with engines of its own. */
export interface Peer {
  readonly engines: Engines;
  /** Its own processes. Where there is no `sink`, ClickHouse itself reads from Kafka. */
  readonly processes: { readonly ingest: PeerProcess; readonly sink?: PeerProcess };
  /** Where events are sent, and how. */
  readonly url: string;
  readonly form: LoadForm;
  readonly key: string;
  /** Where they are stored: a table with its database, the column of an event's time, and the expression of its uuid as a text. */
  readonly table: string;
  readonly time: string;
  readonly uuid: string;
}

/** Starts a peer, which ends with `running`. @throws {Absent} where it cannot be had */
export type StartPeer = (running: AsyncDisposableStack) => Promise<Peer>;

/** A peer cannot be had on this machine. */
export class Absent extends Error {
  override readonly name = 'Absent';
}
